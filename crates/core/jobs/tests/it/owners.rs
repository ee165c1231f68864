//! Whose a job is, and how many one may have.

use jobs::{Config, JobState, NewJob, Outcome, StartError};

use crate::support::{Stage, in_time};

fn wait() -> NewJob {
    NewJob::new("wait", "for ever")
}

async fn until_cancelled(job: jobs::Working) -> Outcome {
    job.cancelled().cancelled().await;
    Outcome::failed("cancelled")
}

#[tokio::test]
async fn a_strangers_job_is_as_unknown_as_none() {
    let stage = Stage::new().await;
    let (owner, stranger) = (stage.agent().await, stage.agent().await);
    let id = stage.jobs.start(&owner, wait(), until_cancelled).unwrap();
    let unknown = stage.jobs.output(&stranger, id).unwrap_err();
    assert_eq!(unknown.to_string(), "you have no job `job-1`; you have none");
    assert_eq!(in_time(stage.jobs.kill(&stranger, id)).await.unwrap_err(), unknown);
    assert_eq!(in_time(stage.jobs.ended(&stranger, id)).await.unwrap_err(), unknown);
    assert_eq!(stage.jobs.id(&stranger, "job-1").unwrap_err(), unknown);
    assert!(stage.jobs.list(&stranger).is_empty() && stage.jobs.take_meta(&stranger, id).is_none());
    assert_eq!((stage.jobs.running(&owner), stage.jobs.running(&stranger)), (1, 0));
    in_time(stage.jobs.settled(&stranger)).await;
    assert_eq!(stage.states(&owner), [JobState::Running], "nobody touched it");

    let own = stage.jobs.start(&stranger, wait(), until_cancelled).unwrap();
    assert_eq!(own, id, "ids are counted for each owner");
    in_time(stage.jobs.kill(&stranger, own)).await.unwrap();
    assert_eq!((stage.states(&owner), stage.states(&stranger)), (vec![JobState::Running], vec![JobState::Killed]));
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn the_next_agent_of_a_session_has_none_of_the_last_ones_jobs() {
    let stage = Stage::new().await;
    let session = stage.sessions.create("/home/me");
    let first = stage.agent_of(session.clone()).await;
    stage.jobs.start(&first, wait(), until_cancelled).unwrap();
    in_time(first.dispose()).await.unwrap();
    assert!(session.is_empty(), "a job is in no log: {:?}", session.snapshot().events());
    let log = serde_json::to_string(&**session.header()).unwrap() + "\n";
    let again = stage.sessions.resume(stage.sessions.vocabulary().decode(log).unwrap()).unwrap();
    let second = stage.agent_of(again).await;
    assert_eq!(second.id(), first.id());
    assert!(stage.jobs.list(&second).is_empty());
    let id = stage.jobs.start(&second, wait(), until_cancelled).unwrap();
    assert!(stage.jobs.list(first.handle()).is_empty(), "who ended sees nothing of who came after");
    assert!(stage.jobs.output(first.handle(), id).is_err());
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn an_id_is_read_strictly() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let id = stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    assert_eq!(stage.jobs.id(&agent, "job-1"), Ok(id));
    for wrong in ["", "1", "job-", "job-2", "job-+1", "job--1", "JOB-1", "job-1 ", "job-99999999999999999999"] {
        let unknown = stage.jobs.id(&agent, wrong).unwrap_err();
        assert_eq!(unknown.to_string(), format!("you have no job `{wrong}`; there are: job-1"));
    }
    assert!(stage.jobs.id(&agent, &"x".repeat(1_000)).unwrap_err().to_string().len() < 120);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn so_many_run_and_no_more() {
    let stage = Stage::with(Config { running: 2, ..Config::default() }).await;
    let (agent, other) = (stage.agent().await, stage.agent().await);
    let first = stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    let place = stage.jobs.open(&agent, wait()).unwrap();
    let refused = stage.jobs.start(&agent, wait(), until_cancelled).unwrap_err();
    assert_eq!(refused, StartError::TooMany(2));
    assert_eq!(refused.to_string(), "2 jobs are running, and there may not be more: wait for one to end, or kill one");
    stage.jobs.start(&other, wait(), until_cancelled).expect("others have places of their own");
    assert_eq!((stage.jobs.running(&agent), stage.jobs.list(&agent).len()), (2, 1));
    drop(place);
    let second = stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    assert_eq!(second.to_string(), "job-2", "a place that was given back has used no id");
    in_time(stage.jobs.kill(&agent, first)).await.unwrap();
    stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    assert_eq!(stage.jobs.running(&agent), 2);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn the_oldest_that_ended_is_forgotten() {
    let stage = Stage::with(Config { kept: 2, ..Config::default() }).await;
    let agent = stage.agent().await;
    let lasting = stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    for n in 2..=5 {
        let id = stage.jobs.start(&agent, wait(), move |_| async move { Outcome::completed(n.to_string()) });
        in_time(stage.jobs.ended(&agent, id.unwrap())).await.unwrap();
    }
    let names: Vec<String> = stage.jobs.list(&agent).iter().map(|job| job.id.to_string()).collect();
    assert_eq!(names, ["job-1", "job-4", "job-5"], "what runs is not forgotten");
    let gone = stage.jobs.id(&agent, "job-2").unwrap_err().to_string();
    assert_eq!(gone, "you have no job `job-2`; there are: job-1, job-4, job-5");
    assert_eq!(stage.jobs.output(&agent, lasting).unwrap().info.state, JobState::Running);
    stage.app.close().await.unwrap();
}
