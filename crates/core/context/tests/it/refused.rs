use std::sync::Arc;

use context::{Closing, Ctx, ProvideError, RegisterError, Scope, Stop};
use tokio::sync::Notify;

use crate::{Trace, in_time};

/// Tries everything that a scope may be asked for. All of it is refused, and nothing of it stays behind.
async fn everything_is_refused(ctx: &Ctx) {
    let trace = Trace::default();
    let value = Arc::new(7_u32);
    assert_eq!(ctx.child("child").err(), Some(Closing));
    assert_eq!(ctx.child_in("child", ctx.realm().nested()).err(), Some(Closing));

    assert_eq!(ctx.own(trace.guard("withdrawn")), Err(Closing));
    assert_eq!(trace.take(), ["withdrawn"], "at once");

    assert!(matches!(ctx.provide::<u32>(value.clone()), Err(ProvideError::Closing(Closing))));
    assert!(ctx.get::<u32>().is_none());

    assert!(matches!(ctx.register::<u32>("seven", value.clone()), Err(RegisterError::Closing(Closing))));
    assert!(ctx.realm().named::<u32>("seven").is_none());

    let (dropped, note) = (trace.on_drop("task dropped"), trace.clone());
    let task = async move {
        let _dropped = dropped;
        note.note("task ran");
    };
    assert_eq!(ctx.spawn("task", Stop::Join, task), Err(Closing));
    assert_eq!(trace.take(), ["task dropped"]);

    let (dropped, note) = (trace.on_drop("hook dropped"), trace.clone());
    let hook = async move || {
        let _dropped = dropped;
        note.note("hook ran");
        Ok(())
    };
    assert_eq!(ctx.on_close("hook", hook), Err(Closing));
    assert_eq!(trace.take(), ["hook dropped"]);

    let (dropped, note) = (trace.on_drop("work dropped"), trace.clone());
    let work = move || {
        let _dropped = dropped;
        note.note("work ran");
    };
    assert_eq!(ctx.spawn_blocking("work", work).err(), Some(Closing));
    assert_eq!(trace.take(), ["work dropped"]);

    assert_eq!(Arc::strong_count(&value), 1, "nothing keeps what was offered");
}

#[tokio::test]
async fn a_closed_scope_takes_nothing() {
    let app = Scope::root("app");
    in_time(app.close()).await.unwrap();
    in_time(everything_is_refused(&app)).await;
}

#[tokio::test]
async fn a_scope_that_is_still_closing_takes_nothing() {
    let app = Scope::root("app");
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enter, left) = (entered.clone(), leave.clone());
    app.on_close("slow", async move || {
        enter.notify_one();
        left.notified().await;
        Ok(())
    })
    .unwrap();
    let ctx = (*app).clone();
    drop(app);
    in_time(entered.notified()).await;
    in_time(everything_is_refused(&ctx)).await;
    leave.notify_one();
    assert!(in_time(ctx.closed()).await.is_empty());
}

#[tokio::test]
async fn a_refusal_says_why() {
    assert_eq!(Closing.to_string(), "the scope is closing");
    let app = Scope::root("app");
    app.provide::<u32>(Arc::new(1)).unwrap();
    let twice = app.provide::<u32>(Arc::new(2)).unwrap_err();
    assert_eq!(twice.to_string(), "`u32` is already provided in this realm");
    app.register::<u32>("one", Arc::new(1)).unwrap();
    let taken = app.register::<u32>("one", Arc::new(2)).unwrap_err();
    assert_eq!(taken.to_string(), "the name `one` is taken");
    assert_eq!(app.get::<u32>().as_deref(), Some(&1), "the first stays");
    assert_eq!(app.realm().named::<u32>("one").as_deref(), Some(&1));
    in_time(app.close()).await.unwrap();
}
