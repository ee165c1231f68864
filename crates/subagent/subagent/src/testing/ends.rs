//! How a child ends, and what it says at last.

use std::sync::Arc;

use futures_util::future::join;

use super::given_up::more;
use super::world::World;
use super::{Fixture, Task};
use crate::{StartError, StopReason};

// D-23
pub(crate) async fn every_end_is_a_result(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    let table = [
        (Task::Say("done"), Some(StopReason::Completed), "done"),
        (Task::Silence, Some(StopReason::Completed), ""),
        (Task::Fail, Some(StopReason::Error), ""),
        (Task::Panic, None, ""),
    ];
    for (task, reason, said) in table {
        let Some(request) = world.asks(task) else { continue };
        let (run, result) = world.result(&parent, request).await;
        match reason {
            Some(reason) => assert_eq!(result.reason, reason, "the end of {task:?}"),
            None => assert_ne!(result.reason, StopReason::Completed, "the end of {task:?}"),
        }
        assert_eq!(result.text(), said, "what {task:?} said");
        if task == Task::Fail {
            let message = result.message.as_deref().unwrap_or_default();
            assert!(!message.is_empty() && !message.contains('\n'), "one line says why it failed, not {message:?}");
        }
        world.dispose(&run).await;
        world.quiet(&before, &format!("after the end of {task:?}")).await;
    }
    drop(parent);
    world.close().await;
}

// D-23, D-25
pub(crate) async fn a_cancelled_child_is_aborted(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let (before, news) = (world.census(), world.news().len());
    let request = world.asked(Task::Hang);
    request.cancelled.cancel();
    let refused = world.soon("the start", world.subagents.start(&parent, world.name(), request)).await;
    assert!(matches!(refused, Err(StartError::Cancelled)), "it was cancelled before it was asked, and: {refused:?}");
    world.quiet(&before, "after a request that was cancelled before").await;
    assert_eq!(world.news().len(), news, "something was made");

    let request = world.asked(Task::Hang);
    let cancelled = request.cancelled.clone();
    let run = world.start(&parent, request).await;
    cancelled.cancel();
    let result = world.soon("the end of a cancelled child", run.result()).await;
    assert_eq!(result.reason, StopReason::Aborted, "a cancel that comes before the end");
    world.dispose(&run).await;
    world.quiet(&before, "after a child was cancelled").await;

    let request = world.asked(Task::Say("done"));
    let cancelled = request.cancelled.clone();
    let (run, result) = world.result(&parent, request).await;
    cancelled.cancel();
    assert_eq!(*run.result().await, result, "a cancel that comes after the end changes nothing");
    assert_eq!(result.reason, StopReason::Completed);
    world.dispose(&run).await;
    world.quiet(&before, "after a child was cancelled that had ended").await;
    drop(parent);
    world.close().await;
}

/// How a child is stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Cancelled,
    Disposed,
    ParentClosed,
}

/// Every task of the app has so many turns, for each count until the child has come to its end by itself, before the child
/// is stopped: so it is stopped at every await, its own and those of whatever works for it.
// D-23, D-25
pub(crate) async fn a_child_stopped_at_any_await_is_aborted_or_done(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let empty = world.census();
    for way in [Way::Cancelled, Way::Disposed, Way::ParentClosed] {
        let (mut turns, mut parent) = (0, world.parent().await);
        loop {
            let before = world.census();
            let request = world.asked(Task::Say("done"));
            let cancelled = request.cancelled.clone();
            let run = world.start(&parent, request).await;
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            let had_ended = world.has_ended(run.id());
            match way {
                Way::Cancelled => cancelled.cancel(),
                Way::Disposed => world.dispose(&run).await,
                Way::ParentClosed => {
                    world.soon("the parent's end", parent.dispose()).await.expect("a parent goes without a complaint");
                }
            }
            let when = format!("{way:?} after {turns} turns");
            let result = world.soon("the end of a child that is stopped", run.result()).await;
            match result.reason {
                StopReason::Completed => assert_eq!(result.text(), "done", "{when}: it was said to be done"),
                reason => assert_eq!((reason, had_ended), (StopReason::Aborted, false), "{when}"),
            }
            world.dispose(&run).await;
            let left = if way == Way::ParentClosed { &empty } else { &before };
            world.quiet(left, &format!("after a child was stopped ({when})")).await;
            if had_ended {
                break;
            }
            turns = more(turns);
            if way == Way::ParentClosed {
                parent = world.parent().await;
            }
        }
        drop(parent);
        world.quiet(&empty, "after the parent went").await;
    }
    world.close().await;
}

// D-24
pub(crate) async fn the_output_is_the_childs_own(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    for request in [Task::Silence, Task::Fail].into_iter().filter_map(|task| world.asks(task)) {
        let (run, result) = world.result(&parent, request).await;
        assert_eq!(result.output, [], "a child that said nothing has no output");
        world.dispose(&run).await;
    }
    let stopped = world.start(&parent, world.asked(Task::Hang)).await;
    world.dispose(&stopped).await;
    assert_eq!(stopped.result().await.output, [], "a child that was stopped before it spoke has no output");
    drop(parent);
    world.close().await;
}

/// Asks the provider itself: a run would settle without it.
// D-25
pub(crate) async fn a_result_settles_when_its_scope_closes(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    let (scope, start) = world.direct(&parent, world.asked(Task::Hang));
    let started = world.soon("the start", world.provider.start(start)).await.expect("the child can be started");
    let ended = world.soon("a result whose scope closes", join(started.result, scope.close())).await;
    assert_eq!(ended.0.reason, StopReason::Aborted, "its scope was closed");
    ended.1.expect("a child goes without a complaint");
    drop(scope);
    world.quiet(&before, "after the scope of a run was closed").await;
    drop(parent);
    world.close().await;
}
