//! What a provider is called, and what it says of itself.

use std::sync::Arc;

use super::world::{PARENT_ASKED, PARENT_SAID, World};
use super::{Fixture, Task};
use crate::StartError;

// D-20
pub(crate) async fn its_name_is_its_own(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let providers = world.subagents.providers();
    let before: Vec<Arc<str>> = providers.list().into_iter().map(|(name, _)| name).collect();
    let taken = world.subagents.register(world.name(), world.provider.clone());
    assert!(taken.is_err(), "a second provider was registered under the same name");
    let later = world.subagents.register("contract-later", world.provider.clone()).expect("the name is free");
    let names: Vec<Arc<str>> = providers.list().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [&before[..], &["contract-later".into()]].concat(), "names are listed as they came");
    drop(later);
    let mut offers = world.provider.offers().to_vec();
    let listed = offers.len();
    offers.dedup();
    assert_eq!(offers.len(), listed, "it offers something twice");
    world.close().await;
}

// D-20
pub(crate) async fn a_removed_provider_keeps_what_it_accepted(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let before = world.census();
    let registered = world.subagents.register("contract-brief", world.provider.clone()).expect("the name is free");
    let starting = world.subagents.start(&parent, "contract-brief", world.asked(Task::Hang));
    let live = world.soon("the start", starting).await.expect("the child can be started");
    let accepted = world.subagents.start(&parent, "contract-brief", world.asked(Task::Say("accepted")));
    drop(registered);
    let refused = world.subagents.start(&parent, "contract-brief", world.asked(Task::Hang)).await;
    assert!(matches!(refused, Err(StartError::UnknownProvider { .. })), "a removed provider started a child");
    let accepted = world.soon("the start", accepted).await.expect("it was accepted before");
    assert_eq!(world.soon("the child's end", accepted.result()).await.text(), "accepted");
    assert!(!world.has_ended(live.id()), "a child ended since its provider was removed");
    assert!(live.child().is_none_or(|id| world.is_live(id)), "a child went since its provider was removed");
    world.dispose(&live).await;
    world.dispose(&accepted).await;
    world.quiet(&before, "after the runs of a removed provider were disposed").await;
    drop(parent);
    world.close().await;
}

/// Only children with a session here can be looked at.
// D-20
pub(crate) async fn it_says_truly_whether_its_children_know_the_conversation(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let says = world.provider.inherits_parent_context();
    if !world.is_here() {
        return world.close().await;
    }
    let parent = world.parent().await;
    let (run, _) = world.result(&parent, world.asked(Task::Say("told"))).await;
    let child = run.child().and_then(|id| world.agents.get(id)).expect("a child that runs here is there");
    let heard = child.session().messages().expect("the log is whole");
    for words in [PARENT_ASKED, PARENT_SAID] {
        let knows = heard.iter().any(|message| message.text().contains(words));
        assert_eq!(knows, says, "`inherits_parent_context` says {says}; the child has seen {words:?}: {knows}");
    }
    world.dispose(&run).await;
    drop((parent, child));
    world.close().await;
}
