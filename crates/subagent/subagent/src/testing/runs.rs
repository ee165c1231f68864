//! A run from its start to its end.

use std::sync::Arc;

use futures_util::future::join_all;

use super::world::{PARENT_ASKED, Told, World};
use super::{Fixture, Task};
use crate::StopReason;

// D-22
pub(crate) async fn a_run_is_told_from_start_to_end_once(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let tasks = [Task::Say("one"), Task::Fail, Task::Hang, Task::Say("two")];
    let (mut runs, written) = (Vec::new(), parent.session().len());
    for request in tasks.into_iter().filter_map(|task| world.asks(task)) {
        let run = world.start(&parent, request).await;
        let begun: Vec<_> =
            world.news().iter().filter_map(Told::started).filter(|of| of.run == run.id()).cloned().collect();
        let [begun] = &begun[..] else { panic!("{} starts are told when the start resolves: {begun:?}", begun.len()) };
        let told = (&*begun.provider, begun.parent, begun.child);
        assert_eq!(told, (world.name(), parent.id(), run.child()), "whose child it is, and which");
        runs.push(run);
    }
    for run in &runs {
        world.dispose(run).await;
        let result = run.result().await;
        let ends = world.news().into_iter().filter(|told| matches!(told, Told::Ended(of, ..) if *of == run.id()));
        let ends: Vec<_> = ends.collect();
        let [Told::Ended(_, child, told)] = &ends[..] else { panic!("the ends of a disposed run: {ends:?}") };
        assert_eq!((*child, told), (run.child(), result), "the end tells what the run does");
    }
    assert_eq!(parent.session().len(), written, "the parent's log is not the run's to write");
    drop(parent);
    world.close().await;
}

// D-22, D-25
pub(crate) async fn a_child_is_there_until_its_run_is_disposed(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    for task in [Task::Say("done"), Task::Hang] {
        let run = world.start(&parent, world.asked(task)).await;
        assert_eq!(run.child().is_some(), world.is_here(), "a run names its child's session, if that is here");
        if let Some(id) = run.child() {
            let child = world.agents.get(id).expect("a child is published when its start resolves");
            let lineage = child.session().header().lineage().expect("a child has a parent").clone();
            assert_eq!(lineage.parent(), parent.id(), "and that is whoever delegated");
        }
        if task != Task::Hang {
            world.soon("the child's end", run.result()).await;
        }
        assert!(run.child().is_none_or(|id| world.is_live(id)), "a finished child stays until its run is disposed");
        world.dispose(&run).await;
        assert!(run.child().is_none_or(|id| !world.is_live(id)), "a child is gone when its run was disposed");
        world.quiet(&before, "after a run was disposed").await;
    }
    drop(parent);
    world.close().await;
}

// D-25
pub(crate) async fn a_disposal_returns_when_all_is_quiet(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    let run = world.start(&parent, world.asked(Task::Hang)).await;
    let disposals = (0..4).map(|_| async {
        let disposed = run.dispose().await;
        let held = run.child().is_some_and(|id| world.ledger.held().contains(&id));
        let live = run.child().is_some_and(|id| world.is_live(id));
        (
            disposed.map_err(|error| error.to_string()),
            world.has_ended(run.id()),
            live,
            held,
            world.outside_since(&before),
        )
    });
    let quiet = (Ok(()), true, false, false, Vec::new());
    for disposed in world.soon("the disposals", join_all(disposals)).await {
        assert_eq!(disposed, quiet, "(disposed, end announced, live, log held, left outside) when a disposal returns");
    }
    assert_eq!(world.soon("the child's end", run.result()).await.reason, StopReason::Aborted);
    world.dispose(&run).await;
    world.quiet(&before, "after a run was disposed again").await;
    let asked = parent.followup(PARENT_ASKED).expect("the parent is live").outcome();
    assert!(world.soon("the parent's turn", asked).await.output.is_some(), "the parent is none the worse");
    drop(parent);
    world.close().await;
}

// D-25
pub(crate) async fn a_dropped_run_goes(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    for task in [Task::Hang, Task::Say("done")] {
        let run = world.start(&parent, world.asked(task)).await;
        if task != Task::Hang {
            world.soon("the child's end", run.result()).await;
        }
        let id = run.id();
        drop(run);
        world.eventually("the end of a dropped run", || world.has_ended(id)).await;
        world.quiet(&before, "after a run was dropped").await;
    }
    drop(parent);
    world.close().await;
}

// D-25
pub(crate) async fn children_go_with_their_parent(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let before = world.census();
    for dropped in [false, true] {
        let parent = world.parent().await;
        let hangs = world.start(&parent, world.asked(Task::Hang)).await;
        let (done, _) = world.result(&parent, world.asked(Task::Say("done"))).await;
        if dropped {
            drop(parent);
        } else {
            world.soon("the parent's end", parent.dispose()).await.expect("a parent goes without a complaint");
            let told = world.has_ended(hangs.id()) && world.has_ended(done.id());
            assert!(told, "the ends of its children are told before a parent is gone");
        }
        assert_eq!(world.soon("the child's end", hangs.result()).await.reason, StopReason::Aborted);
        assert_eq!(done.result().await.reason, StopReason::Completed, "what had ended had ended");
        world.quiet(&before, "after the parent went").await;
    }
    world.close().await;
}

// D-31
pub(crate) async fn siblings_do_not_meet(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    let words = ["one", "two", "three", "four", "five"];
    let hangs = world.start(&parent, world.asked(Task::Hang)).await;
    let starts = words.map(|word| world.result(&parent, world.asked(Task::Say(word))));
    for (word, (run, result)) in words.iter().zip(join_all(starts).await) {
        assert_eq!((result.reason, &*result.text()), (StopReason::Completed, *word), "each has its own task");
        world.dispose(&run).await;
    }
    assert!(!world.has_ended(hangs.id()), "a child ended since its siblings did");
    world.dispose(&hangs).await;
    world.quiet(&before, "after six siblings").await;
    drop(parent);
    world.close().await;
}
