use std::sync::Arc;

use context::{CloseError, Ctx, Scope, Stop};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::in_time;

/// What a task of `owner` is told when it closes `target`.
async fn closed_by_task_of(owner: &Ctx, target: Arc<Scope>) -> Result<(), CloseError> {
    let (tell, told) = oneshot::channel();
    owner.spawn("closer", Stop::Join, async move { tell.send(target.close().await).unwrap() }).unwrap();
    in_time(told).await.unwrap()
}

fn refused(answer: Result<(), CloseError>, scope: &str) {
    match answer {
        Err(CloseError::FromWithin(name)) => assert_eq!(name, scope),
        other => panic!("should be refused from within, not {other:?}"),
    }
}

#[tokio::test]
async fn a_task_cannot_close_its_own_scope() {
    let app = Arc::new(Scope::root("app"));
    let answer = closed_by_task_of(&app, app.clone()).await;
    let message = "`app` cannot wait for itself: closed from one of its own tasks";
    assert_eq!(answer.as_ref().unwrap_err().to_string(), message);
    refused(answer, "app");
    assert!(!app.is_closing(), "refused means that nothing was begun");
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_task_cannot_close_what_owns_its_scope() {
    let app = Arc::new(Scope::root("app"));
    let child = app.child("child").unwrap();
    let grandchild = child.child_in("grandchild", app.realm().nested()).unwrap();
    refused(closed_by_task_of(&grandchild, app.clone()).await, "app");
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_task_closes_a_sibling_or_a_child_of_its_scope() {
    let app = Scope::root("app");
    let (one, two) = (app.child("one").unwrap(), Arc::new(app.child("two").unwrap()));
    closed_by_task_of(&one, two.clone()).await.unwrap();
    assert!(two.is_closing() && !one.is_closing());
    let below = Arc::new(one.child("below").unwrap());
    closed_by_task_of(&one, below).await.unwrap();
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_hook_cannot_close_its_own_scope_or_its_owner() {
    let app = Arc::new(Scope::root("app"));
    let child = Arc::new(app.child("child").unwrap());
    let (tell, told) = oneshot::channel();
    let (outer, inner) = (Arc::downgrade(&app), Arc::downgrade(&child));
    child
        .on_close("hook", async move || {
            let (outer, inner) = (outer.upgrade().unwrap(), inner.upgrade().unwrap());
            tell.send((inner.close().await, outer.close().await)).unwrap();
            Ok(())
        })
        .unwrap();
    in_time(child.close()).await.unwrap();
    let (of_child, of_app) = in_time(told).await.unwrap();
    refused(of_child, "child");
    refused(of_app, "app");
    in_time(app.close()).await.unwrap();
}

#[tokio::test]
async fn a_hook_closes_a_scope_that_is_not_its_own() {
    let (app, other) = (Scope::root("app"), Arc::new(Scope::root("other")));
    let target = other.clone();
    app.on_close("hook", async move || Ok(target.close().await?)).unwrap();
    in_time(app.close()).await.unwrap();
    assert!(other.is_closing());
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_work_cannot_close_its_own_scope() {
    let app = Arc::new(Scope::root("app"));
    let target = app.clone();
    let answer = app.spawn_blocking("work", move || Handle::current().block_on(target.close())).unwrap();
    refused(in_time(answer).await.unwrap(), "app");
    in_time(app.close()).await.unwrap();
}
