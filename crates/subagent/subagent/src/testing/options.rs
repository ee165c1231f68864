//! What may be asked for at the start.

use std::sync::Arc;

use llm::Sampling;
use session::{RequestHeader, RequestHeaderEvent};
use tools::ToolFilter;

use super::probe::PROBE;
use super::world::World;
use super::{Fixture, Task, model};
use crate::{Capability, OutputSchema, Persona, Request, Run, StartError, StopReason};

fn schema() -> OutputSchema {
    let properties = serde_json::json!({ "n": { "type": "integer" } });
    let schema = serde_json::json!({ "type": "object", "properties": properties, "required": ["n"] });
    OutputSchema::new(schema).expect("the schema is one that can be checked")
}

fn offers(world: &World, capability: Capability) -> bool {
    world.provider.offers().contains(&capability)
}

/// What the model of a child was given with its first request.
fn given(world: &World, run: &Run) -> Arc<RequestHeader> {
    let child = run.child().and_then(|id| world.agents.get(id)).expect("a child that runs here is there");
    child.session().latest::<RequestHeaderEvent>().expect("its model was asked").header.clone()
}

// D-21
pub(crate) async fn what_it_does_not_offer_is_refused(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let (before, news, kept) = (world.census(), world.news().len(), world.ledger.kept());
    let plain = || world.asked(Task::Say("an option was ignored"));
    let persona = Persona::new("You are a witness.").expect("it says something");
    let table = [
        (Capability::OutputSchema, Request { output_schema: Some(schema()), ..plain() }),
        (Capability::DepthLimit, Request { max_depth: Some(2), ..plain() }),
        (Capability::ToolFilter, Request { tool_filter: Some(ToolFilter::denying([PROBE])), ..plain() }),
        (Capability::Persona, Request { persona: Some(persona), ..plain() }),
    ];
    for (asked, request) in table.into_iter().filter(|(asked, _)| !offers(&world, *asked)) {
        match world.soon("the start", world.subagents.start(&parent, world.name(), request)).await {
            Err(StartError::Unsupported { capability, .. }) if capability == asked => {}
            other => panic!("{asked} is not offered, and asking for it led to {other:?}"),
        }
        world.quiet(&before, "after a start was refused").await;
        assert_eq!((world.news().len(), world.ledger.kept()), (news, kept.clone()), "something was made");
    }
    drop(parent);
    world.close().await;
}

// D-21, D-26
pub(crate) async fn a_limit_of_depth_holds(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let within = |max_depth| Request { max_depth: Some(max_depth), ..world.asked(Task::Say("at depth 1")) };
    if offers(&world, Capability::DepthLimit) {
        let news = world.news().len();
        let refused = world.soon("the start", world.subagents.start(&parent, world.name(), within(0))).await;
        assert!(matches!(refused, Err(StartError::TooDeep { depth: 1, limit: 0 })), "too deep, and: {refused:?}");
        assert_eq!(world.news().len(), news, "something was made");
        let (run, result) = world.result(&parent, within(1)).await;
        assert_eq!(result.text(), "at depth 1");
        if let Some(child) = run.child().and_then(|id| world.agents.get(id)) {
            assert_eq!(child.session().header().depth(), 1, "a child stands one below its parent");
        }
        world.dispose(&run).await;
    }
    drop(parent);
    world.close().await;
}

// D-30
pub(crate) async fn an_output_schema_holds(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    if offers(&world, Capability::OutputSchema) {
        let with = |request| Request { output_schema: Some(schema()), ..request };
        let hands_in = world.asks(Task::HandIn).expect("a provider that takes a schema has children that hand in");
        let (run, result) = world.result(&parent, with(hands_in)).await;
        let want = serde_json::from_str(model::HANDED_IN).ok();
        assert_eq!((result.reason, result.structured), (StopReason::Completed, want), "it was handed in");
        world.dispose(&run).await;
        let (run, result) = world.result(&parent, with(world.asked(Task::Say("in my own words")))).await;
        let got = (result.reason, result.structured);
        assert_eq!(got, (StopReason::Error, None), "a child that hands nothing in has failed");
        world.dispose(&run).await;
    }
    drop(parent);
    world.close().await;
}

/// Only children that run here can have the suite's tool.
// D-29
pub(crate) async fn a_tool_filter_holds(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    let calls = world.asks(Task::Call(PROBE)).filter(|_| world.is_here() && offers(&world, Capability::ToolFilter));
    if let Some(calls) = calls {
        for (filter, admitted) in [(None, true), (Some(ToolFilter::denying([PROBE])), false)] {
            let (run, _) = world.result(&parent, Request { tool_filter: filter, ..calls.clone() }).await;
            let shown = given(&world, &run).tools.iter().any(|tool| &*tool.name == PROBE);
            let ran = run.child().is_some_and(|id| world.probe.calls_of(id) > 0);
            assert_eq!((shown, ran), (admitted, admitted), "(shown, run) of a tool that is admitted: {admitted}");
            world.dispose(&run).await;
        }
        let unknown = Request { tool_filter: Some(ToolFilter::denying(["contract_none"])), ..calls };
        let refused = world.soon("the start", world.subagents.start(&parent, world.name(), unknown)).await;
        assert!(matches!(refused, Err(StartError::UnknownTools(_))), "a filter names no tool, and: {refused:?}");
    }
    drop(parent);
    world.close().await;
}

/// Only the prompt of a child that runs here can be seen.
// D-29
pub(crate) async fn a_persona_holds(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    if world.is_here() && offers(&world, Capability::Persona) {
        let persona = Persona::new("You are a witness at depth {{depth}}.").expect("it says something");
        for (persona, want) in [(Some(persona), true), (None, false)] {
            let (run, _) = world.result(&parent, Request { persona, ..world.asked(Task::Say("seen")) }).await;
            let system = given(&world, &run).system.clone();
            let has = system.contains("You are a witness at depth 1.");
            assert_eq!(has, want, "the persona is for the child that it was asked for alone; the child has {system:?}");
            world.dispose(&run).await;
        }
    }
    drop(parent);
    world.close().await;
}

/// Only the profile of a child that runs here can be seen.
// D-27
pub(crate) async fn what_is_not_asked_for_is_the_parents(fixture: Arc<dyn Fixture>) {
    let world = World::new(fixture).await;
    let parent = world.parent().await;
    if world.is_here() {
        let asked = world.asked(Task::Say("seen"));
        let capped = Request { max_tokens: Some(100), ..asked.clone() };
        let plain = Request { model: None, ..asked.clone() };
        let own = asked.model.clone().unwrap_or_else(|| parent.profile().route.clone());
        let cap = |max_tokens| Sampling { max_tokens, ..Sampling::default() };
        let table = [
            (plain, parent.profile().route.clone(), cap(None)),
            (asked, own.clone(), cap(None)),
            (capped, own, cap(Some(100))),
        ];
        for (request, route, sampling) in table {
            let (run, _) = world.result(&parent, request).await;
            let header = given(&world, &run);
            assert_eq!((header.route(), &header.sampling), (route, &sampling), "the child's model, and its sampling");
            let child = run.child().and_then(|id| world.agents.get(id)).expect("a child that runs here is there");
            let (here, there) = (child.session().header(), parent.session().header());
            assert_eq!(here.cwd(), there.cwd(), "the working directory is the parent's, always");
            world.dispose(&run).await;
        }
    }
    drop(parent);
    world.close().await;
}
