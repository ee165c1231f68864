use std::future::pending;
use std::time::Duration;

use context::{Scope, Stop};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::{Trace, failures, in_time, refuses};

#[tokio::test]
async fn a_joined_task_is_waited_for_and_an_aborted_one_is_dropped() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("older")).unwrap();
    let (note, cancelled) = (trace.clone(), app.cancelled().clone());
    app.spawn("joined", Stop::Join, async move {
        cancelled.cancelled().await;
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        note.note("joined ended");
    })
    .unwrap();
    let dropped = trace.on_drop("aborted dropped");
    app.spawn("aborted", Stop::Abort, async move {
        let _dropped = dropped;
        pending::<()>().await;
    })
    .unwrap();
    in_time(app.close()).await.unwrap();
    let happened = trace.take();
    assert!(happened.contains(&"joined ended".to_owned()), "{happened:?}");
    assert!(happened.contains(&"aborted dropped".to_owned()), "{happened:?}");
    assert_eq!(happened.last().unwrap(), "older", "a task is joined before what is older is withdrawn");
}

#[tokio::test(start_paused = true)]
async fn a_joined_task_that_outlives_its_grace_is_aborted_and_reported() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let dropped = trace.on_drop("dropped");
    app.spawn("stubborn", Stop::Join, async move {
        let _dropped = dropped;
        pending::<()>().await;
    })
    .unwrap();
    let began = Instant::now();
    let told = failures(in_time(app.close()).await);
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    assert_eq!(told, ["app/stubborn: did not end within 30 s of being cancelled"]);
    tokio::task::yield_now().await;
    assert_eq!(trace.take(), ["dropped"]);
}

#[tokio::test]
async fn a_task_that_panics_is_reported_when_its_scope_closes() {
    let app = Scope::root("app");
    let (tell, told) = oneshot::channel::<()>();
    app.spawn("broken", Stop::Join, async move {
        let _tell = tell;
        panic!("out of luck");
    })
    .unwrap();
    assert!(in_time(told).await.is_err(), "the task has ended");
    let (tell, told) = oneshot::channel();
    app.spawn("well", Stop::Join, async move { tell.send(7).unwrap() }).unwrap();
    assert_eq!(in_time(told).await, Ok(7), "the scope goes on");
    let told = failures(in_time(app.close()).await);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("app/broken: ") && told[0].contains("out of luck"), "{told:?}");
}

#[tokio::test]
async fn a_task_that_fails_is_reported_when_its_scope_closes() {
    let app = Scope::root("app");
    for (what, fails) in [("well", false), ("writer", true), ("also well", false)] {
        let (tell, told) = oneshot::channel::<()>();
        let task = async move {
            let _tell = tell;
            if fails { refuses("disk full") } else { Ok(()) }
        };
        app.spawn_fallible(what, Stop::Join, task).unwrap();
        assert!(in_time(told).await.is_err(), "the task has ended");
    }
    assert_eq!(failures(in_time(app.close()).await), ["app/writer: disk full"]);
}

#[tokio::test]
async fn a_task_may_wait_for_what_is_newer_than_it() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let (tell, newer) = oneshot::channel::<tokio_util::sync::CancellationToken>();
    let note = trace.clone();
    app.spawn("waits", Stop::Join, async move {
        newer.await.unwrap().cancelled().await;
        note.note("waiter");
    })
    .unwrap();
    let closed = tokio_util::sync::CancellationToken::new();
    tell.send(closed.clone()).unwrap();
    let note = trace.clone();
    app.on_close("newer", async move || {
        note.note("newer");
        closed.cancel();
        Ok(())
    })
    .unwrap();
    in_time(app.close()).await.unwrap();
    assert_eq!(trace.take(), ["newer", "waiter"]);
}
