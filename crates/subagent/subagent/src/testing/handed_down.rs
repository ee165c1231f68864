//! What a child is handed, whoever makes it.

use std::sync::Arc;

use session::{InboxAccepted, SessionId};

use super::world::{Note, Told, World};
use super::{Fixture, Task};
use crate::Descriptor;

/// Looks at every child of the parent that can be seen, whatever the run calls its own: one that a provider makes by
/// another delegation of its own is captured too late.
// D-01, D-03, D-08, D-12
pub(crate) async fn what_is_handed_down_is_taken_at_the_call(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let note = |n| parent.session().append(Note { n }).expect("the session is open");
    note(1);
    let starting = world.subagents.start(&parent, world.name(), world.asked(Task::Say("done")));
    let at_the_call = parent.session().len();
    note(2);
    let run = world.soon("the start", starting).await.expect("the child can be started");
    note(3);
    world.soon("the child's end", run.result()).await;
    let below: Vec<SessionId> =
        world.news().iter().filter_map(Told::published).filter(|id| *id != parent.id()).collect();
    for id in &below {
        let log = world.ledger.first(*id).expect("what was published was durable before");
        let lineage = log.header().lineage().expect("every agent below the parent has one");
        let handed = log.latest::<Note>().map(|note| note.n);
        assert_eq!(handed, Some(1), "what holds for the parent at the call is on the first page of {id}");
        if lineage.parent() == parent.id() {
            assert_eq!(lineage.parent_seq(), at_the_call, "{id} was captured at the call");
        } else {
            assert!(below.contains(&lineage.parent()), "{id} is below the parent");
        }
    }
    if world.is_here() {
        assert!(!below.is_empty(), "a child that runs here is an agent that can be seen");
    }
    world.dispose(&run).await;
    drop(parent);
    world.close().await;
}

/// Only the log of a child that runs here can be read.
// D-05, D-06, D-26
pub(crate) async fn a_child_begins_with_what_it_was_handed(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    if !world.is_here() {
        return world.close().await;
    }
    let parent = world.parent().await;
    parent.session().append(Note { n: 1 }).expect("the session is open");
    let run = world.start(&parent, world.asked(Task::Hang)).await;
    let id = run.child().expect("a child that runs here has a session");
    let log = world.ledger.first(id).expect("what was published was durable before");
    let lineage = log.header().lineage().expect("a child has a parent");
    let begun = world.news().iter().find_map(Told::started).expect("it was announced").clone();
    let reached = (begun.durable, lineage.parent_seq());
    assert!(reached.0 >= reached.1, "the parent's log is durable through the capture by then: {reached:?}");
    assert_eq!(lineage.depth(), 1);
    let own: Vec<&str> = log.events_from(log.header().seed_length()).map(|event| event.tag()).collect();
    let at = |tag: &str| own.iter().position(|of| *of == tag);
    let (stamp, described) = (at("contract/note"), at("subagent/descriptor"));
    let prompted = log.events_from(log.header().seed_length()).position(|event| event.get::<InboxAccepted>().is_some());
    assert!(stamp.is_some() && stamp < described, "a child begins with its stamps, then its descriptor: {own:?}");
    assert!(described < prompted, "and is prompted in the same batch, after them: {own:?}");
    assert_eq!(&*log.latest::<Descriptor>().expect("it is described").provider, world.name());
    world.dispose(&run).await;
    drop(parent);
    world.close().await;
}
