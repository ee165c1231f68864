//! Starts that nobody wants any more, or that fail: nothing is left, or a child that was announced and has ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use agent::{Agent, AgentRef, AgentSetup};
use async_trait::async_trait;
use context::{BoxError, Scope, Stop};

use super::world::{Told, World};
use super::{Fixture, Task};
use crate::{StartError, StopReason};

/// The last count of turns before counts grow by a half: a child that takes long to start is given up at some of them.
const EACH: usize = 64;

/// The count after this one.
pub(super) fn more(turns: usize) -> usize {
    turns + 1.max(turns.saturating_sub(EACH) / 2)
}

/// How a start is given up.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Dropped,
    Cancelled,
    ParentClosed,
}

/// Every task of the app has so many turns, for each count until the start has come to its end by itself, before it is
/// given up: so it is given up at every await, the provider's and those of whatever works for it. There is room for one
/// child, so each count finds the room that the one before it took free again.
// D-11, D-22, D-25, D-52
pub(crate) async fn a_start_given_up_anywhere_leaves_nothing(fixture: Arc<dyn Fixture>) {
    let world = World::within(fixture, 1).await;
    let empty = world.census();
    for way in [Way::Dropped, Way::Cancelled, Way::ParentClosed] {
        let mut parent = world.parent().await;
        let (mut turns, mut starts) = (0, [0, 0]);
        loop {
            let before = if way == Way::ParentClosed { &empty } else { &world.census() };
            let (settled, announced) = give_up(&world, &parent, way, turns).await;
            starts[usize::from(announced)] += 1;
            world.quiet(before, &format!("after a start that was given up ({way:?} after {turns} turns)")).await;
            if settled {
                break;
            }
            turns = more(turns);
            if way == Way::ParentClosed {
                parent = world.parent().await;
            }
        }
        assert!(starts[0] > 0, "{way:?}: a child is there before its provider was asked");
        let (run, _) = match way {
            Way::Dropped | Way::Cancelled => world.result(&parent, world.asked(Task::Say("there is room"))).await,
            Way::ParentClosed => continue,
        };
        world.dispose(&run).await;
        world.soon("the parent's end", parent.dispose()).await.expect("a parent goes without a complaint");
        world.quiet(&empty, "after the parent went").await;
    }
    world.close().await;
}

/// Whether the start had come to its end, and whether its child was announced.
async fn give_up(world: &World, parent: &Agent, way: Way, turns: usize) -> (bool, bool) {
    let (request, from, kept) = (world.asked(Task::Hang), world.news().len(), world.ledger.kept());
    let cancelled = request.cancelled.clone();
    let mut starting = world.subagents.start(parent, world.name(), request);
    let mut answer = None;
    for _ in 0..turns {
        answer = halted(Pin::new(&mut starting), 0).await;
        if answer.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (when, is_settled) = (format!("{way:?} after {turns} turns"), answer.is_some());
    match way {
        Way::Dropped => drop(answer.take()),
        Way::Cancelled => cancelled.cancel(),
        Way::ParentClosed => {
            world.soon("the parent's end", parent.dispose()).await.expect("a parent goes without a complaint");
        }
    }
    if way == Way::Dropped {
        drop(starting);
    } else {
        let answer = match answer {
            Some(answer) => answer,
            None => world.soon("the answer to a start that was given up", starting).await,
        };
        match answer {
            Ok(run) => {
                let result = world.soon("the end of a child that was given up", run.result()).await;
                assert_eq!(result.reason, StopReason::Aborted, "{when}");
                world.dispose(&run).await;
            }
            Err(StartError::Cancelled) if way == Way::Cancelled => {}
            Err(StartError::ParentClosing) if way == Way::ParentClosed => {}
            Err(other) => panic!("{when}: {other}"),
        }
    }
    let balanced = || {
        let news = world.news();
        let begun = news[from..].iter().filter_map(Told::started).count();
        begun == news[from..].iter().filter(|told| matches!(told, Told::Ended(..))).count()
            && !any_live(world, &news[from..])
    };
    world.eventually("the end of whatever was begun", balanced).await;
    let news = world.news()[from..].to_vec();
    let announced = news.iter().find_map(Told::started);
    let published: Vec<_> = news.iter().filter_map(Told::published).collect();
    if let Some(begun) = announced {
        assert!(
            begun.child.is_none_or(|id| published.contains(&id)),
            "{when}: an unseen child was announced: {news:?}"
        );
    } else {
        assert_eq!(published, [], "{when}: an agent was published and its start never announced");
    }
    let stray: Vec<_> =
        world.ledger.kept().into_iter().filter(|id| !kept.contains(id) && !published.contains(id)).collect();
    assert_eq!(stray, [], "{when}: the log of a child that never was");
    (is_settled, announced.is_some())
}

fn any_live(world: &World, news: &[Told]) -> bool {
    news.iter().filter_map(Told::published).any(|id| world.is_live(id))
}

/// The provider's own future, dropped after each number of times that it was not ready.
// D-11, D-25
pub(crate) async fn a_start_dropped_at_any_await_leaves_nothing(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    for awaits in 0.. {
        let (before, kept, from) = (world.census(), world.ledger.kept(), world.news().len());
        let (scope, start) = world.direct(&parent, world.asked(Task::Hang));
        let mut starting = world.provider.start(start);
        let reached = world.soon("the start", halted(starting.as_mut(), awaits)).await;
        let is_whole = reached.is_some();
        drop((starting, reached.map(|started| started.expect("the child can be started"))));
        world.soon("the closing of a start that was dropped", scope.close()).await.expect("without a complaint");
        drop(scope);
        let when = format!("after a start was dropped at its await {awaits}");
        world.quiet(&before, &when).await;
        let published: Vec<_> = world.news()[from..].iter().filter_map(Told::published).collect();
        let stray: Vec<_> =
            world.ledger.kept().into_iter().filter(|id| !kept.contains(id) && !published.contains(id)).collect();
        assert_eq!(stray, [], "{when}: the log of a child that never was");
        if is_whole {
            break;
        }
    }
    drop(parent);
    world.close().await;
}

/// Polls until it is ready, or has been pending once more than `awaits` times.
async fn halted<F: Future + ?Sized>(mut future: Pin<&mut F>, awaits: usize) -> Option<F::Output> {
    let mut left = awaits;
    std::future::poll_fn(|cx| match (future.as_mut().poll(cx), left) {
        (Poll::Ready(output), _) => Poll::Ready(Some(output)),
        (Poll::Pending, 0) => Poll::Ready(None),
        (Poll::Pending, _) => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Lets no child be set up.
struct Refuses;

#[async_trait]
impl AgentSetup for Refuses {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        match agent.session().header().lineage() {
            Some(_) => Err("the contract refuses it".into()),
            None => Ok(()),
        }
    }
}

/// Only the creation of children that run here can be made to fail.
// D-11, D-22
pub(crate) async fn a_start_that_fails_leaves_nothing(fixture: Arc<dyn Fixture>) {
    let world = World::within(fixture, 1).await;
    if !world.is_here() {
        return world.close().await;
    }
    let parent = world.parent().await;
    let (before, news, kept) = (world.census(), world.news().len(), world.ledger.kept());
    for full_disk in [false, true] {
        let setup: Arc<dyn AgentSetup> = Arc::new(Refuses);
        let refuses = (!full_disk).then(|| world.app.realm().register("contract", setup).expect("the name is free"));
        world.ledger.fail_children(full_disk);
        let refused =
            world.soon("the start", world.subagents.start(&parent, world.name(), world.asked(Task::Hang))).await;
        assert!(refused.is_err(), "a child that cannot be set up, or kept, was started");
        drop(refuses);
        world.ledger.fail_children(false);
        world.quiet(&before, "after a start failed").await;
        assert_eq!((world.news().len(), world.ledger.kept()), (news, kept.clone()), "something was seen, or kept");
    }
    let (run, result) = world.result(&parent, world.asked(Task::Say("there is room"))).await;
    assert_eq!(result.text(), "there is room");
    world.dispose(&run).await;
    drop(parent);
    world.close().await;
}

/// How many starts there are at once, and how often.
const CROWD: usize = 8;
const ROUNDS: usize = 12;

// D-11, D-22, D-25
pub(crate) async fn nothing_is_left_whatever_the_interleaving(fixture: Arc<dyn Fixture>) {
    let world = Arc::new(World::new(fixture).await);
    let before = world.census();
    let crowds = Scope::root("crowds");
    for round in 0..ROUNDS {
        let parent = world.parent().await;
        let crowd = crowds.child("crowd").expect("it is open");
        for n in 0..CROWD {
            let work = one_of_many(world.clone(), parent.handle().clone(), n * 7 + round);
            crowd.spawn("one", Stop::Join, work).expect("it is open");
        }
        match round % 3 {
            0 => world.soon("the parent's end", parent.dispose()).await.expect("a parent goes without a complaint"),
            1 => drop(parent),
            _ => world.soon("the crowd", crowd.close()).await.expect("nobody in it complains"),
        }
        world.soon("the crowd", crowd.close()).await.expect("nobody in it complains");
    }
    world.soon("the crowds", crowds.close()).await.expect("nobody in them complains");
    world.quiet(&before, "after many starts at once").await;
    Arc::into_inner(world).expect("everyone in the crowds is gone").close().await;
}

async fn one_of_many(world: Arc<World>, parent: AgentRef, way: usize) {
    let request = world.asked(if way.is_multiple_of(3) { Task::Hang } else { Task::Say("done") });
    let cancelled = request.cancelled.clone();
    let starting = world.subagents.start(&parent, world.name(), request);
    if way.is_multiple_of(4) {
        return drop(starting);
    }
    let run = match world.soon("the start", starting).await {
        Ok(run) => run,
        Err(StartError::ParentClosing) => return,
        Err(other) => panic!("{other}"),
    };
    match way % 5 {
        0 => return drop(run),
        1 => cancelled.cancel(),
        2 => {}
        _ if way.is_multiple_of(3) => {}
        _ => drop(world.soon("the child's end", run.result()).await),
    }
    world.dispose(&run).await;
    assert!(world.has_ended(run.id()), "the end is told when a disposal returns");
}
