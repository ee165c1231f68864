//! How jobs end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use context::{Registration, Stop};
use jobs::{Config, JobState, NewJob, Outcome};
use sandbox::{Denial, Mode, Operation};
use sandbox_policy::Denied;
use session::{Session, Snapshot};
use tokio::sync::{Notify, oneshot};

use crate::support::{Stage, in_time, notices};

fn count() -> NewJob {
    NewJob::new("count", "to\nthree")
}

#[tokio::test]
async fn a_job_runs_and_its_end_is_told_once() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let (go_on, gate) = oneshot::channel::<()>();
    let id = stage.jobs.start(&agent, count(), |job| async move {
        job.push("one\n");
        gate.await.unwrap();
        job.push("two\n");
        Outcome::completed("three")
    });
    let id = id.unwrap();
    assert_eq!((id.to_string().as_str(), stage.jobs.running(&agent)), ("job-1", 1));
    assert_eq!(stage.states(&agent), [JobState::Running]);
    go_on.send(()).unwrap();
    stage.settled(&agent).await;
    assert_eq!((stage.states(&agent), stage.jobs.running(&agent)), (vec![JobState::Completed], 0));
    assert_eq!(stage.told(), ["job-1 (count: to\\nthree) starts", "job-1 (count: to\\nthree) completed"]);
    let read = stage.jobs.output(&agent, id).unwrap();
    assert_eq!(read.text, "one\ntwo\nthree");
    assert_eq!(
        notices(agent.session()),
        ["<notice>\njob-1 (count: to\\nthree) completed:\none\ntwo\nthree\n</notice>"]
    );
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_fails_or_panics_says_so() {
    async fn never(_: jobs::Working) -> Outcome {
        panic!("at its first poll")
    }
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    stage.jobs.start(&agent, count(), |_| async { Outcome::failed("no") }).unwrap();
    stage.jobs.start(&agent, count(), never).unwrap();
    stage.jobs.start(&agent, count(), |_| -> std::future::Ready<Outcome> { panic!("at the call") }).unwrap();
    stage.settled(&agent).await;
    assert_eq!(stage.states(&agent), [JobState::Failed; 3]);
    let mut told = notices(agent.session());
    told.sort();
    insta::assert_snapshot!(told.join("\n"), @r"
    <notice>
    job-1 (count: to\nthree) failed:
    no
    </notice>
    <notice>
    job-2 (count: to\nthree) failed:
    it panicked: this is a bug in `count`
    </notice>
    <notice>
    job-3 (count: to\nthree) failed:
    it panicked: this is a bug in `count`
    </notice>
    ");
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_killed_job_is_joined_and_not_told() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let (here, wound_up) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (is_here, winds_up) = (here.clone(), wound_up.clone());
    let id = stage.jobs.start(&agent, count(), |job| async move {
        is_here.notify_one();
        job.cancelled().cancelled().await;
        tokio::task::yield_now().await;
        winds_up.store(true, Ordering::SeqCst);
        Outcome::completed("nobody asked any more")
    });
    in_time(here.notified()).await;
    let info = in_time(stage.jobs.kill(&agent, id.unwrap())).await.unwrap();
    assert!(wound_up.load(Ordering::SeqCst), "it was waited for");
    assert_eq!((info.state, stage.jobs.running(&agent)), (JobState::Killed, 0));
    assert_eq!(notices(agent.session()), [""; 0]);
    assert_eq!(stage.told().last().unwrap(), "job-1 (count: to\\nthree) killed");
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_job_that_ended_cannot_be_killed_any_more() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let id = stage.jobs.start(&agent, count(), |_| async { Outcome::completed("done") }).unwrap();
    stage.settled(&agent).await;
    let info = in_time(stage.jobs.kill(&agent, id)).await.unwrap();
    assert_eq!(info.state, JobState::Completed);
    assert_eq!((notices(agent.session()).len(), stage.told().len()), (1, 2), "its end is told once");
    stage.app.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_does_not_notice_is_dropped_after_its_grace() {
    let config = Config { grace: Duration::from_secs(15), ..Config::default() };
    let stage = Stage::with(config).await;
    let agent = stage.agent().await;
    let (gone, is_gone) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
    let (drops, here) = (gone.clone(), is_gone.clone());
    let id = stage.jobs.start(&agent, count(), |_| async move {
        let _guard = Registration::new(move || drops.store(true, Ordering::SeqCst));
        here.notify_one();
        std::future::pending().await
    });
    in_time(is_gone.notified()).await;
    let killed = tokio::time::Instant::now();
    let info = in_time(stage.jobs.kill(&agent, id.unwrap())).await.unwrap();
    assert_eq!(info.state, JobState::Killed);
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(killed.elapsed().as_secs(), 15);
    let read = stage.jobs.output(&agent, info.id).unwrap();
    assert_eq!(read.text, "it did not end within 15 s of being killed");
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_job_ends_with_its_owner() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let (here, wound_up) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (is_here, winds_up) = (here.clone(), wound_up.clone());
    let work = |job: jobs::Working| async move {
        is_here.notify_one();
        job.cancelled().cancelled().await;
        winds_up.store(true, Ordering::SeqCst);
        Outcome::completed("too late")
    };
    stage.jobs.start(&agent, count(), work).unwrap();
    in_time(here.notified()).await;
    let settled = stage.jobs.settled(&agent);
    in_time(agent.dispose()).await.unwrap();
    assert!(wound_up.load(Ordering::SeqCst), "it was joined");
    in_time(settled).await;
    assert_eq!(stage.told(), ["job-1 (count: to\\nthree) starts", "job-1 (count: to\\nthree) killed"]);
    assert_eq!(notices(agent.session()), [""; 0]);
    assert!(stage.jobs.list(&agent).is_empty() && stage.jobs.running(&agent) == 0);
    let late = stage.jobs.start(&agent, count(), |_| async { Outcome::completed("") }).unwrap_err();
    assert_eq!(late, jobs::StartError::OwnerClosing);
    stage.app.close().await.unwrap();
}

/// Whatever ends a job, and whoever hears of it.
// D-32
#[tokio::test]
async fn what_a_job_was_denied_is_in_the_log_once_however_it_ends() {
    #[derive(Clone, Copy, PartialEq)]
    enum Ends {
        ByItself,
        Killed,
        WithItsOwner,
    }
    for ends in [Ends::ByItself, Ends::Killed, Ends::WithItsOwner] {
        let stage = Stage::new().await;
        stage.sessions.learn::<Denied>().unwrap();
        let agent = stage.agent().await;
        // Nothing that it is told is read.
        stage.held.send_replace(true);
        agent.followup("work").unwrap();
        stage.readings(1).await;
        let here = Arc::new(Notify::new());
        let (is_here, log) = (here.clone(), agent.session().clone());
        let work = move |job: jobs::Working| async move {
            is_here.notify_one();
            if ends != Ends::ByItself {
                job.cancelled().cancelled().await;
            }
            // Its driver ends first, and closes the log.
            while ends == Ends::WithItsOwner && log.append_of_pending(|_| None::<Denied>).is_ok() {
                tokio::task::yield_now().await;
            }
            Outcome::failed("denied").denied(Denial::new(Operation::Write, "/x", Mode::ReadOnly))
        };
        let id = stage.jobs.start(&agent, count(), work).unwrap();
        in_time(here.notified()).await;
        match ends {
            Ends::ByItself => drop(in_time(stage.jobs.ended(&agent, id)).await.unwrap()),
            Ends::Killed => drop(in_time(stage.jobs.kill(&agent, id)).await.unwrap()),
            Ends::WithItsOwner => {}
        }
        if ends != Ends::ByItself {
            assert!(notices(agent.session()).is_empty());
        }
        in_time(agent.dispose()).await.unwrap();
        let log = reopened(&stage, agent.session());
        let denied: Vec<_> = log.events().iter().filter_map(|event| event.get::<Denied>()).collect();
        assert_eq!(denied, [&Denied(Denial::new(Operation::Write, "/x", Mode::ReadOnly))]);
        assert!(log.events().iter().any(|event| event.tag() == "sandbox/denied" && event.is_ignorable()));
        stage.app.close().await.unwrap();
    }
}

/// What somebody reads who has only the log.
fn reopened(stage: &Stage, session: &Session) -> Snapshot {
    let mut log = serde_json::to_string(&**session.header()).unwrap() + "\n";
    session.snapshot().events().iter().for_each(|event| log += &(event.to_json() + "\n"));
    stage.sessions.vocabulary().decode(log).unwrap().log().clone()
}

#[tokio::test]
async fn what_a_job_registered_is_gone_before_its_end_is_told() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let gone = Arc::new(AtomicBool::new(false));
    let (goes, seen) = (gone.clone(), Arc::new(AtomicBool::new(false)));
    let (was_gone, sees) = (gone.clone(), seen.clone());
    let told = agent.session().observe(0, move |_| sees.store(was_gone.load(Ordering::SeqCst), Ordering::SeqCst));
    stage
        .jobs
        .start(&agent, count(), |job| async move {
            let closing = job.ctx().clone();
            let task = async move {
                closing.cancelled().cancelled().await;
                goes.store(true, Ordering::SeqCst);
            };
            job.ctx().spawn("helper", Stop::Join, task).unwrap();
            Outcome::completed("done")
        })
        .unwrap();
    stage.settled(&agent).await;
    assert!(gone.load(Ordering::SeqCst) && seen.load(Ordering::SeqCst));
    drop(told);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_a_job_could_not_wind_up_is_in_its_output() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let id = stage.jobs.start(&agent, count(), |job| async move {
        job.ctx().on_close("coat", async || Err("it is still here".into())).unwrap();
        Outcome::completed("done")
    });
    stage.settled(&agent).await;
    let read = stage.jobs.output(&agent, id.unwrap()).unwrap();
    insta::assert_snapshot!(read.text, @r"
    done

    The job was not wound up cleanly: one thing failed to close: job/coat: it is still here
    ");
    stage.app.close().await.unwrap();
}
