//! What happens at the same time.

use std::sync::Arc;

use jobs::{Config, JobState, NewJob, Outcome};

use crate::support::{Stage, in_time, notices};

fn job() -> NewJob {
    NewJob::new("race", "run")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_kill_and_an_end_agree_on_who_came_first() {
    let stage = Stage::with(Config { running: 4, kept: 4, unheard: 1_000, ..Config::default() }).await;
    let agent = stage.agent().await;
    let mut told = 0;
    for round in 0..500 {
        let id = stage.jobs.start(&agent, job(), move |_| async move {
            for _ in 0..round % 7 {
                tokio::task::yield_now().await;
            }
            Outcome::completed("done")
        });
        let info = in_time(stage.jobs.kill(&agent, id.unwrap())).await.unwrap();
        match info.state {
            JobState::Completed => told += 1,
            JobState::Killed => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(notices(agent.session()).len(), told, "a job that was killed is not told, any other is");
    }
    assert_eq!(stage.told().len(), 1_000, "each began and ended once");
    stage.app.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn first_jobs_that_start_together_are_all_listed() {
    for _ in 0..100 {
        let stage = Stage::new().await;
        let agent = stage.agent().await;
        let barrier = Arc::new(std::sync::Barrier::new(4));
        let starts = (0..4).map(|_| {
            let (jobs, owner, barrier) = (stage.jobs.clone(), agent.handle().clone(), barrier.clone());
            std::thread::spawn(move || {
                barrier.wait();
                jobs.start(&owner, job(), |_| async { Outcome::completed("done") }).unwrap()
            })
        });
        let starts: Vec<_> = starts.collect();
        let mut ids: Vec<String> = starts.into_iter().map(|start| start.join().unwrap().to_string()).collect();
        ids.sort();
        assert_eq!(ids, ["job-1", "job-2", "job-3", "job-4"]);
        stage.settled(&agent).await;
        assert_eq!(notices(agent.session()).len(), 4);
        in_time(stage.app.close()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_that_ends_takes_along_what_starts_meanwhile() {
    for _ in 0..100 {
        let stage = Stage::new().await;
        let agent = stage.agent().await;
        let (jobs, owner) = (stage.jobs.clone(), agent.handle().clone());
        let starting = std::thread::spawn(move || {
            let mut begun = 0;
            for _ in 0..16 {
                let wait = |job: jobs::Working| async move {
                    job.cancelled().cancelled().await;
                    Outcome::failed("cancelled")
                };
                begun += usize::from(jobs.start(&owner, job(), wait).is_ok());
            }
            begun
        });
        in_time(agent.dispose()).await.unwrap();
        let begun = starting.join().unwrap();
        assert_eq!(stage.told().len(), 2 * begun, "{:?}", stage.told());
        assert_eq!(notices(agent.session()), [""; 0]);
        in_time(stage.app.close()).await.unwrap();
    }
}
