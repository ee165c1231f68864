use std::sync::mpsc;

use context::Scope;

use crate::{Trace, failures, in_time};

#[tokio::test]
async fn blocking_work_answers() {
    let app = Scope::root("app");
    let answer = app.spawn_blocking("sum", || (1..=4).sum::<u32>()).unwrap();
    assert_eq!(in_time(answer).await, Ok(10));
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn blocking_work_is_joined_though_nobody_wants_its_answer() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("older")).unwrap();
    let (release, held) = mpsc::channel::<()>();
    let note = trace.clone();
    let answer = app.spawn_blocking("write", move || {
        held.recv().unwrap();
        note.note("written");
    });
    drop(answer.unwrap());
    let ctx = (*app).clone();
    drop(app);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(trace.take(), [""; 0], "the closing waits");
    release.send(()).unwrap();
    assert!(in_time(ctx.closed()).await.is_empty());
    assert_eq!(trace.take(), ["written", "older"]);
}

#[tokio::test]
async fn blocking_work_that_panics_gives_no_answer_and_is_reported() {
    let app = Scope::root("app");
    let answer = app.spawn_blocking("parse", || -> u32 { panic!("bad digit") }).unwrap();
    assert!(in_time(answer).await.is_err());
    let told = failures(in_time(app.close()).await);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("app/parse: ") && told[0].contains("bad digit"), "{told:?}");
}
