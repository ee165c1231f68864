//! Which tools a child has, however the filters are named.

use std::sync::Arc;

use session::RequestHeaderEvent;
use session_store::SessionStore;
use subagent::{Descriptor, Request};
use tools::ToolFilter;

use crate::world::*;

/// What a child is shown, of three tools.
async fn shown(world: &World, parent: &agent::AgentRef, denied: Option<&'static str>) -> Vec<&'static str> {
    let tool_filter = denied.map(|name| ToolFilter::denying([name]));
    let request = Request { tool_filter, ..Request::new("say done") };
    let run = world.subagents.start(parent, "spawn", request).await.unwrap();
    run.result().await;
    let log = world.log(run.child().unwrap());
    run.dispose().await.unwrap();
    let header = &log.latest::<RequestHeaderEvent>().unwrap().header;
    let is_shown = |name: &&str| header.tools.iter().any(|tool| *tool.name == **name);
    ["read", "write", "edit"].into_iter().filter(is_shown).collect()
}

fn register(ctx: &context::Ctx, name: &str, denied: &'static str) {
    ctx.register::<ToolFilter>(name, Arc::new(ToolFilter::denying([denied]))).unwrap();
}

// D-29
#[tokio::test]
async fn an_apps_filter_holds_for_a_child_whatever_its_name() {
    within(async {
        let world = World::new().await;
        register(&world.app, "delegation", "write");
        let parent = world.parent().await;
        assert_eq!(shown(&world, &parent, None).await, ["read", "edit"]);
        assert_eq!(shown(&world, &parent, Some("edit")).await, ["read"]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-29
#[tokio::test]
async fn a_parents_own_filter_is_handed_down_whatever_its_name() {
    within(async {
        let world = World::new().await;
        register(&world.app, "everyone's", "read");
        for name in ["delegation", "everyone's", "mine"] {
            let parent = world.parent().await;
            register(parent.ctx(), name, "write");
            assert_eq!(shown(&world, &parent, None).await, ["edit"], "{name}");
            let log = world.log(*world.news.children().last().unwrap());
            let held = log.latest::<Descriptor>().unwrap().tool_filter.clone();
            assert_eq!(held, Some(ToolFilter::denying(["write"])), "the app's is everyone's already");
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-29
#[tokio::test]
async fn a_resumed_child_is_held_by_its_log() {
    within(async {
        let world = World::new().await;
        let root = world.parent().await;
        let tool_filter = Some(ToolFilter::denying(["write"]));
        let run = world.subagents.start(&root, "spawn", Request { tool_filter, ..Request::new("say done") });
        let run = run.await.unwrap();
        run.result().await;
        run.dispose().await.unwrap();
        // Nobody is left who would know its filter, but for its own file.
        let store = world.app.get::<dyn SessionStore>().unwrap();
        let session = store.open(&world.sessions, run.child().unwrap()).await.unwrap().session;
        let resumed = world.agent(session).await;
        assert_eq!(shown(&world, &resumed, Some("edit")).await, ["read"]);
        world.app.close().await.unwrap();
    })
    .await;
}
