use std::sync::Arc;

use context::{Scope, Stop};
use tokio::sync::Notify;

use crate::{Trace, failures, in_time, refuses};

/// A scope with one of everything, each leaving a trace, most of them failing.
fn one_of_everything(trace: &Trace) -> Scope {
    let app = Scope::root("app");
    app.own(trace.guard("guard")).unwrap();
    let note = trace.clone();
    app.on_close("first", async move || {
        note.note("first");
        refuses("no")
    })
    .unwrap();
    let child = app.child("child").unwrap();
    let note = trace.clone();
    child
        .on_close("inner", async move || {
            note.note("inner");
            refuses("not I")
        })
        .unwrap();
    child.leave();
    let (note, cancelled) = (trace.clone(), app.cancelled().clone());
    app.spawn("task", Stop::Join, async move {
        cancelled.cancelled().await;
        note.note("task");
    })
    .unwrap();
    let note = trace.clone();
    app.on_close("last", async move || {
        note.note("last");
        Ok(())
    })
    .unwrap();
    app.own(trace.guard("newest")).unwrap();
    app
}

#[tokio::test]
async fn newest_first_and_every_error_is_kept() {
    let trace = Trace::default();
    let app = one_of_everything(&trace);
    let told = failures(in_time(app.close()).await);
    let order: Vec<String> = trace.take().into_iter().filter(|what| what != "task").collect();
    assert_eq!(order, ["newest", "last", "inner", "first", "guard"]);
    assert_eq!(told, ["child/inner: not I", "app/first: no"], "newest first too");
}

#[tokio::test]
async fn every_caller_gets_the_same_answer() {
    let trace = Trace::default();
    let app = one_of_everything(&trace);
    let (one, two) = in_time(async { tokio::join!(app.close(), app.close()) }).await;
    let happened = trace.take().len();
    let three = in_time(app.close()).await;
    assert_eq!(happened, 6, "each thing once");
    assert_eq!(trace.take(), [""; 0], "closing again does nothing");
    let (one, two, three) = (failures(one), failures(two), failures(three));
    assert_eq!(one.len(), 2);
    assert_eq!((&two, &three), (&one, &one));
    assert_eq!(in_time(app.closed()).await.len(), 2, "who only waits is told as well");
}

#[tokio::test]
async fn an_error_counts_and_lists_what_failed() {
    let app = Scope::root("app");
    app.on_close("log", async || refuses("disk full")).unwrap();
    assert_eq!(in_time(app.close()).await.unwrap_err().to_string(), "one thing failed to close: app/log: disk full");
    let app = one_of_everything(&Trace::default());
    let error = in_time(app.close()).await.unwrap_err();
    assert_eq!(error.to_string(), "2 things failed to close: child/inner: not I; app/first: no");
}

#[tokio::test]
async fn drop_begins_what_close_awaits() {
    let trace = Trace::default();
    let scope = one_of_everything(&trace);
    let ctx = scope.child("seen").unwrap().leave();
    let outer = (*scope).clone();
    drop(scope);
    assert!(outer.is_closing() && outer.cancelled().is_cancelled() && ctx.cancelled().is_cancelled());
    assert_eq!(in_time(outer.closed()).await.len(), 2);
    assert_eq!(trace.take().len(), 6);
    assert!(ctx.is_closing());
}

#[tokio::test]
async fn a_closing_can_be_started_and_waited_for_later() {
    let trace = Trace::default();
    let app = one_of_everything(&trace);
    app.start_closing();
    assert!(app.is_closing() && app.cancelled().is_cancelled());
    assert_eq!(failures(in_time(app.close()).await).len(), 2);
    assert_eq!(trace.take().len(), 6);
}

#[tokio::test]
async fn dropping_a_child_closes_it_alone() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("app's")).unwrap();
    let child = app.child("child").unwrap();
    child.own(trace.guard("child's")).unwrap();
    let ctx = (*child).clone();
    drop(child);
    in_time(ctx.closed()).await;
    assert_eq!(trace.take(), ["child's"]);
    assert!(!app.is_closing() && !app.cancelled().is_cancelled());
    in_time(app.close()).await.unwrap();
    assert_eq!(trace.take(), ["app's"]);
}

#[tokio::test]
async fn a_closing_outlives_the_future_that_asked_for_it() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("guard")).unwrap();
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, left) = (entered.clone(), leave.clone());
    app.on_close("slow", async move || {
        enter.notify_one();
        left.notified().await;
        Ok(())
    })
    .unwrap();
    in_time(async {
        tokio::select! {
            _ = app.close() => panic!("the hook has not ended"),
            () = entered.notified() => {}
        }
    })
    .await;
    assert_eq!(trace.take(), [""; 0]);
    leave.notify_one();
    in_time(app.closed()).await;
    assert_eq!(trace.take(), ["guard"]);
}

#[tokio::test]
async fn cancellation_reaches_the_whole_tree_before_anything_is_withdrawn() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let child = app.child("child").unwrap();
    let grandchild = child.child("grandchild").unwrap();
    grandchild.own(trace.guard("grandchild's")).unwrap();
    let seen = (grandchild.cancelled().clone(), trace.clone());
    app.on_close("newest", async move || {
        let (cancelled, trace) = seen;
        trace.note(format!("cancelled: {}, withdrawn: {:?}", cancelled.is_cancelled(), trace.take()));
        Ok(())
    })
    .unwrap();
    in_time(app.close()).await.unwrap();
    assert_eq!(trace.take(), ["cancelled: true, withdrawn: []", "grandchild's"]);
}

#[tokio::test]
async fn what_panics_while_closing_is_reported_and_stops_nothing() {
    let trace = Trace::default();
    let app = Scope::root("app");
    app.own(trace.guard("oldest")).unwrap();
    app.on_close("late", async || panic!("after its first await")).unwrap();
    app.on_close("early", || -> std::future::Ready<_> { panic!("before there is a future") }).unwrap();
    app.own(context::Registration::new(|| panic!("in a guard"))).unwrap();
    let told = failures(in_time(app.close()).await);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].starts_with("app/guard: "), "{told:?}");
    assert!(told[1].starts_with("app/early: ") && told[1].contains("before there is a future"), "{told:?}");
    assert!(told[2].starts_with("app/late: ") && told[2].contains("after its first await"), "{told:?}");
    assert_eq!(trace.take(), ["oldest"]);
}

#[tokio::test]
async fn a_scope_left_to_its_owner_closes_with_it() {
    let trace = Trace::default();
    let app = Scope::root("app");
    let left = app.child("left").unwrap();
    left.own(trace.guard("left's")).unwrap();
    let ctx = left.leave();
    assert_eq!((ctx.name(), app.name()), ("left", "app"));
    assert!(!ctx.is_closing());
    in_time(app.close()).await.unwrap();
    assert!(ctx.is_closing());
    assert_eq!(trace.take(), ["left's"]);
}

#[tokio::test]
async fn a_closed_tree_holds_on_to_nothing() {
    let value = Arc::new("kept alive by what refers to it");
    let app = Scope::root("app");
    let child = app.child_in("child", app.realm().nested()).unwrap().leave();
    child.provide::<&str>(value.clone()).unwrap();
    child.register::<&str>("named", value.clone()).unwrap();
    let held = value.clone();
    child
        .on_close("hook", async move || {
            drop(held);
            Ok(())
        })
        .unwrap();
    let held = value.clone();
    child
        .spawn("task", Stop::Abort, async move {
            let _held = held;
            std::future::pending::<()>().await;
        })
        .unwrap();
    let held = value.clone();
    child.own(child.realm().on::<u32>(move |_| drop(held.clone()))).unwrap();
    assert_eq!(Arc::strong_count(&value), 6);
    in_time(app.close()).await.unwrap();
    assert_eq!(Arc::strong_count(&value), 1);
}
