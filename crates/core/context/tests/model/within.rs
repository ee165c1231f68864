use std::sync::Arc;

use context::{CloseError, Ctx, Scope, Stop};
use shuttle::future::spawn;
use tokio::sync::oneshot;

use crate::check;

/// What a task of `owner` is told when it closes `target`; nothing if `owner` took no task, or cut it off.
fn closed_by_task_of(owner: &Ctx, target: &Arc<Scope>) -> oneshot::Receiver<Result<(), CloseError>> {
    let ((tell, told), target) = (oneshot::channel(), Arc::downgrade(target));
    let task = async move {
        if let Some(target) = target.upgrade() {
            let answer = target.close().await;
            // Not dropped here: that would close it, too.
            drop(target);
            let _ = tell.send(answer);
        }
    };
    let _ = owner.spawn("closer", Stop::Join, task);
    told
}

/// Whoever else closes it meanwhile: its own tasks, and those below, are refused and never wait for themselves.
#[test]
fn a_scope_is_never_closed_from_within_and_nobody_hangs() {
    check(|| async {
        let app = Arc::new(Scope::root("app"));
        let child = app.child("child").unwrap().leave();
        let inside = spawn({
            let app = app.clone();
            async move { [closed_by_task_of(&app, &app), closed_by_task_of(&child, &app)] }
        });
        let closing = spawn({
            let app = app.clone();
            async move { app.close().await }
        });
        for told in inside.await.unwrap() {
            match told.await {
                Ok(Err(CloseError::FromWithin("app"))) | Err(_) => {}
                other => panic!("should be refused, not {other:?}"),
            }
        }
        closing.await.unwrap().unwrap();
    });
}

/// A hook runs in a task of the scope, and spawning from a task does not make it one of another's.
#[test]
fn hooks_and_tasks_know_whose_they_are_under_every_schedule() {
    check(|| async {
        let (one, two) = (Arc::new(Scope::root("one")), Arc::new(Scope::root("two")));
        let (tell, told) = oneshot::channel();
        let inner = Arc::downgrade(&one);
        one.on_close("hook", async move || {
            let _ = tell.send(inner.upgrade().expect("who closes it holds it").close().await);
            Ok(())
        })
        .unwrap();
        let other = closed_by_task_of(&one, &two);
        let own = closed_by_task_of(&two, &two);
        let closing = spawn({
            let one = one.clone();
            async move { one.close().await.unwrap() }
        });
        assert!(matches!(told.await.unwrap(), Err(CloseError::FromWithin("one"))));
        assert!(matches!(other.await, Ok(Ok(()))), "a scope that is not its own");
        assert!(matches!(own.await, Ok(Err(CloseError::FromWithin("two"))) | Err(_)));
        closing.await.unwrap();
        two.close().await.unwrap();
    });
}
