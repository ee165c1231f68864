use std::time::Duration;

use context::{Ctx, Scope};
use tokio::time::{Instant, sleep};

use crate::{Trace, failures, in_time, refuses};

/// A child whose closing takes this many seconds and then notes its name.
fn slow(app: &Ctx, trace: &Trace, name: &'static str, seconds: u64) {
    let child = app.child(name).unwrap();
    let trace = trace.clone();
    child
        .on_close("slow", async move || {
            sleep(Duration::from_secs(seconds)).await;
            trace.note(name);
            Ok(())
        })
        .unwrap();
    child.leave();
}

#[tokio::test(start_paused = true)]
async fn slow_siblings_close_side_by_side() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("older")).unwrap();
    slow(&app, &trace, "a", 3);
    slow(&app, &trace, "b", 1);
    slow(&app, &trace, "c", 2);
    let began = Instant::now();
    in_time(app.close()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(3), "as long as the slowest");
    assert_eq!(trace.take(), ["b", "c", "a", "older"], "what is older waits for all of them");
}

#[tokio::test(start_paused = true)]
async fn siblings_with_something_between_them_take_turns() {
    let trace = Trace::default();
    let app = Scope::root("app");
    slow(&app, &trace, "a", 2);
    app.own(trace.guard("between")).unwrap();
    slow(&app, &trace, "b", 3);
    let began = Instant::now();
    in_time(app.close()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    assert_eq!(trace.take(), ["b", "between", "a"]);
}

#[tokio::test(start_paused = true)]
async fn what_each_sibling_failed_at_is_kept_newest_first() {
    let app = Scope::root("app");
    for (name, seconds) in [("a", 2), ("b", 1), ("c", 3)] {
        let child = app.child(name).unwrap();
        child
            .on_close("slow", async move || {
                sleep(Duration::from_secs(seconds)).await;
                refuses("no")
            })
            .unwrap();
        child.leave();
    }
    let told = failures(in_time(app.close()).await);
    assert_eq!(told, ["c/slow: no", "b/slow: no", "a/slow: no"], "also of those that closed before their turn");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_already_closing_is_waited_for() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("older")).unwrap();
    let child = app.child("child").unwrap();
    let note = trace.clone();
    child
        .on_close("slow", async move || {
            sleep(Duration::from_secs(2)).await;
            note.note("child");
            refuses("no")
        })
        .unwrap();
    drop(child);
    let told = failures(in_time(app.close()).await);
    assert_eq!(trace.take(), ["child", "older"]);
    assert_eq!(told, ["child/slow: no"]);
}
