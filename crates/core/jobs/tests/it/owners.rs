//! Whose a job is, and how many one may have.

use std::sync::Arc;

use jobs::{Config, JobState, Lost, NOTICE_LIMIT, NewJob, Outcome, Reader, StartError};

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
    assert!(stage.jobs.list(&stranger).is_empty());
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
    stage.jobs.start(&first, wait(), until_cancelled).unwrap();
    in_time(first.dispose()).await.unwrap();
    let mut log = serde_json::to_string(&**session.header()).unwrap() + "\n";
    session.snapshot().events().iter().for_each(|event| log += &(event.to_json() + "\n"));
    let again = stage.sessions.resume(stage.sessions.vocabulary().decode(log).unwrap()).unwrap();
    let second = stage.agent_of(again).await;
    assert_eq!(second.id(), first.id());
    assert!(stage.jobs.list(&second).is_empty());
    let gone = stage.jobs.id(&second, "job-2").unwrap_err();
    assert_eq!(gone.lost, Some(Lost::Earlier));
    insta::assert_snapshot!(gone, @"you have no job `job-2`: it may have ended with an earlier process, or be of the conversation that you were forked from; you have none");
    assert_eq!(stage.jobs.id(&second, "job-3").unwrap_err().to_string(), "you have no job `job-3`; you have none");
    let id = stage.jobs.start(&second, wait(), until_cancelled).unwrap();
    assert_eq!(id.to_string(), "job-3", "no id is given twice in one log");
    assert_eq!(stage.jobs.id(&second, "job-2").unwrap_err().lost, Some(Lost::Earlier));
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
    in_time(agent.when_idle()).await;
    assert_eq!(names(&stage, &agent), ["job-1", "job-4", "job-5"], "what runs is not forgotten");
    let gone = stage.jobs.id(&agent, "job-2").unwrap_err().to_string();
    let why = "it ended, and only the last are kept";
    assert_eq!(gone, format!("you have no job `job-2` any more: {why}; there are: job-1, job-4, job-5"));
    assert_eq!(stage.jobs.output(&agent, lasting).unwrap().info.state, JobState::Running);
    stage.app.close().await.unwrap();
}

fn names(stage: &Stage, agent: &agent::AgentRef) -> Vec<String> {
    stage.jobs.list(agent).iter().map(|job| job.id.to_string()).collect()
}

#[tokio::test]
async fn what_its_owner_has_not_heard_of_is_not_forgotten() {
    let stage = Stage::with(Config { kept: 2, ..Config::default() }).await;
    stage.app.provide(Arc::new(Reader("read_it".into()))).unwrap();
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    for n in 1..=40 {
        // Every other one is pointed to.
        let text = "x".repeat(if n % 2 == 0 { NOTICE_LIMIT + 1 } else { 1 });
        let id = stage.jobs.start(&agent, wait(), move |_| async move { Outcome::completed(text) });
        in_time(stage.jobs.ended(&agent, id.unwrap())).await.unwrap();
    }
    let killed = stage.jobs.start(&agent, wait(), until_cancelled).unwrap();
    in_time(stage.jobs.kill(&agent, killed)).await.unwrap();
    assert_eq!(stage.jobs.list(&agent).len(), 41, "the turn has read none of it");
    stage.held.send_replace(false);
    in_time(agent.when_idle()).await;
    let kept = |n| stage.jobs.id(&agent, &format!("job-{n}")).is_ok();
    assert!((1..=20).all(|n| kept(2 * n)), "{:?}", names(&stage, &agent));
    assert_eq!((1..=20).filter(|n| kept(2 * n - 1)).count(), 1, "with the one that was killed, two");
    for n in 1..=20 {
        let id = stage.jobs.id(&agent, &format!("job-{}", 2 * n)).unwrap();
        assert_eq!(stage.jobs.output(&agent, id).unwrap().text.len(), NOTICE_LIMIT + 1);
    }
    let last = stage.jobs.start(&agent, wait(), |_| async { Outcome::completed("") }).unwrap();
    in_time(stage.jobs.ended(&agent, last)).await.unwrap();
    in_time(agent.when_idle()).await;
    assert_eq!(names(&stage, &agent).len(), 2, "what was read is forgotten like any other");
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_is_too_far_behind_begins_no_more() {
    let stage = Stage::with(Config { unheard: 2, ..Config::default() }).await;
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    let start = || stage.jobs.start(&agent, wait(), |_| async { Outcome::completed("") });
    for _ in 0..2 {
        in_time(stage.jobs.ended(&agent, start().unwrap())).await.unwrap();
    }
    let refused = start().unwrap_err();
    assert_eq!(refused, StartError::TooManyUnheard(2));
    insta::assert_snapshot!(refused, @"2 jobs have ended that you have not heard of yet: you are told at your next step, and may then start more");
    stage.held.send_replace(false);
    in_time(agent.when_idle()).await;
    start().unwrap();
    stage.app.close().await.unwrap();
}
