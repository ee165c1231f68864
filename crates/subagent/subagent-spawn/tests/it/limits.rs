//! How deep delegation goes, and what a child has from its parent.

use agent::{Agent, Profile, Spec};
use bundle::Policies;
use llm::Sampling;
use session::{RequestHeaderEvent, Session};
use session_store::SessionStore;
use subagent::{Descriptor, Limits, Request, Run, StartError};

use crate::doubles::Lines;
use crate::world::*;

fn to_depth(max_depth: u32) -> Policies {
    Policies { limits: Limits { max_depth, ..Limits::default() }, ..Policies::default() }
}

/// A child, its child, and so on, all of them waiting; the last is the deepest.
async fn chain(world: &World, root: &Agent, length: u32) -> Vec<Run> {
    let (mut runs, mut at) = (Vec::new(), root.handle().clone());
    for _ in 0..length {
        let run = world.spawn(&at, "hang").await;
        at = world.child(&run);
        runs.push(run);
    }
    runs
}

async fn refused(world: &World, parent: &agent::AgentRef, request: Request) -> Option<(u32, u32)> {
    match world.subagents.start(parent, "spawn", request).await {
        Ok(run) => {
            run.dispose().await.unwrap();
            None
        }
        Err(StartError::TooDeep { depth, limit }) => Some((depth, limit)),
        Err(other) => panic!("{other}"),
    }
}

// D-26
#[tokio::test]
async fn depth_is_counted_kept_and_bounded() {
    within(async {
        assert_eq!(Limits::default().max_depth, 3);
        for max_depth in [3, 1, 0] {
            let world = World::with(to_depth(max_depth), |plugins| plugins, |_| {}).await;
            let root = world.parent().await;
            let runs = chain(&world, &root, max_depth).await;
            for (run, depth) in runs.iter().zip(1..) {
                let log = world.log(run.child().unwrap());
                assert_eq!(log.header().depth(), depth);
                let text = std::fs::read_to_string(world.file(run.child().unwrap())).unwrap();
                assert!(text.lines().next().unwrap().contains(&format!(r#""delegationDepth":{depth}"#)));
            }
            let deepest = runs.last().map_or_else(|| root.handle().clone(), |run| world.child(run));
            let before = (world.news.all(), world.names());
            assert_eq!(refused(&world, &deepest, Request::new("hang")).await, Some((max_depth + 1, max_depth)));
            assert_eq!((world.news.all(), world.names()), before, "nothing existed");
            world.app.close().await.unwrap();
        }
    })
    .await;
}

// D-26
#[tokio::test]
async fn a_request_may_lower_the_limit_and_not_raise_it() {
    within(async {
        let world = World::with(to_depth(2), |plugins| plugins, |_| {}).await;
        let root = world.parent().await;
        let with = |max_depth| Request { max_depth: Some(max_depth), ..Request::new("hang") };
        assert_eq!(refused(&world, &root, with(0)).await, Some((1, 0)));
        assert_eq!(refused(&world, &root, with(1)).await, None);
        let runs = chain(&world, &root, 2).await;
        assert_eq!(refused(&world, &world.child(&runs[0]), with(1)).await, Some((2, 1)));
        assert_eq!(refused(&world, &world.child(&runs[1]), with(99)).await, Some((3, 2)));
        let told = world.subagents.start(&root, "spawn", with(0)).await.unwrap_err().to_string();
        assert_eq!(told, "a child at depth 1 would pass the limit of 0: delegation is forbidden");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-26
#[tokio::test]
async fn a_childs_limit_holds_for_all_below_it_whatever_they_ask() {
    within(async {
        let world = World::new().await;
        let root = world.parent().await;
        let with = |max_depth| Request { max_depth, ..Request::new("hang") };
        let start = |parent: &agent::AgentRef, max_depth| world.subagents.start(parent, "spawn", with(max_depth));
        let held = start(&root, Some(2)).await.unwrap();
        for asked in [None, Some(99)] {
            let below = start(&world.child(&held), asked).await.unwrap();
            let log = world.log(below.child().unwrap());
            assert_eq!(log.latest::<Descriptor>().unwrap().max_depth, Some(2), "what held for its parent holds for it");
            for asked in [None, Some(3)] {
                assert_eq!(refused(&world, &world.child(&below), with(asked)).await, Some((3, 2)));
            }
            below.dispose().await.unwrap();
        }
        assert_eq!(refused(&world, &world.child(&held), with(Some(1))).await, Some((2, 1)), "it may be lowered");
        let free = chain(&world, &root, 2).await;
        assert_eq!(refused(&world, &world.child(&free[1]), with(None)).await, None, "nobody else is held to it");
        let log = world.log(free[1].child().unwrap());
        assert_eq!(log.latest::<Descriptor>().unwrap().max_depth, None);

        // Its log alone says what it is held to.
        let (id, leaf) = (held.child().unwrap(), start(&root, Some(1)).await.unwrap());
        held.dispose().await.unwrap();
        let store = world.app.get::<dyn SessionStore>().unwrap();
        let resumed = world.agent(store.open(&world.sessions, id).await.unwrap().session).await;
        let below = start(&resumed, None).await.unwrap();
        assert_eq!(refused(&world, &world.child(&below), with(None)).await, Some((3, 2)));

        // A fork's prefix holds its parent's descriptor as well as its own.
        let fork = world.subagents.start(&world.child(&free[0]), "fork", with(Some(2))).await.unwrap();
        assert_eq!(refused(&world, &world.child(&fork), with(None)).await, Some((3, 2)));
        let fork = world.subagents.start(&world.child(&leaf), "fork", with(None)).await.unwrap_err().to_string();
        assert_eq!(fork, "a child at depth 2 would pass the limit of 1");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-26
#[tokio::test]
async fn a_resumed_child_counts_by_its_header() {
    within(async {
        let world = World::with(to_depth(2), |plugins| plugins, |_| {}).await;
        let root = world.parent().await;
        let run = world.spawn(&root, "say done").await;
        run.result().await;
        run.dispose().await.unwrap();
        root.dispose().await.unwrap();
        // Nobody is left who would know its depth, but for its own file.
        let store = world.app.get::<dyn SessionStore>().unwrap();
        let session: Session = store.open(&world.sessions, run.child().unwrap()).await.unwrap().session;
        let resumed = world.agent(session).await;
        let deeper = world.spawn(&resumed, "hang").await;
        assert_eq!(world.log(deeper.child().unwrap()).header().depth(), 2);
        assert_eq!(refused(&world, &world.child(&deeper), Request::new("hang")).await, Some((3, 2)));
        world.app.close().await.unwrap();
    })
    .await;
}

// D-26
#[tokio::test]
async fn the_tool_tells_a_model_that_it_is_too_deep() {
    within(async {
        let world = World::with(to_depth(1), |plugins| plugins, |_| {}).await;
        let root = world.parent().await;
        let outcome = tell(&root, "spawn one { spawn two { write ../never x } }").await;
        let want = "spawn two: error: the child was not started: a child at depth 2 would pass the limit of 1";
        assert!(said(&outcome).contains(want), "{}", said(&outcome));
        assert_eq!(world.news.children().len(), 1);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-27
#[tokio::test]
async fn a_child_has_its_parents_directory_model_and_token_cap() {
    within(async {
        let world = World::new().await;
        let end = || llm::Chunk::End(llm::Finish::Stop);
        world.model("mine", Lines(vec![vec![end()]]));
        world.model("other", Lines(vec![vec![end()]]));
        let session = world.sessions.create(world.at("ws").to_str().unwrap());
        let sampling = Sampling { max_tokens: Some(1000), temperature: Some(0.5) };
        let profile = Profile { route: "mine/large".parse().unwrap(), sampling: sampling.clone() };
        let parent = world.agents.create(&world.app, Spec::new(session, profile)).await.unwrap();
        let other =
            Request { model: Some("other/small/v2".parse().unwrap()), max_tokens: Some(10), ..Request::new("go") };
        let capped = Request { max_tokens: Some(2000), ..Request::new("go") };
        let cap = |max_tokens| Sampling { max_tokens: Some(max_tokens), ..sampling.clone() };
        let table = [
            (Request::new("go"), "mine/large", cap(1000)),
            (other, "other/small/v2", cap(10)),
            (capped, "mine/large", cap(2000)),
        ];
        for (request, route, sampling) in table {
            let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
            run.result().await;
            let log = world.log(run.child().unwrap());
            let header = &log.latest::<RequestHeaderEvent>().unwrap().header;
            assert_eq!((header.route().to_string(), &header.sampling), (route.to_owned(), &sampling));
            assert_eq!(log.header().cwd(), parent.session().header().cwd(), "always the parent's");
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-27
#[tokio::test]
async fn a_model_that_nobody_serves_is_refused_before_anything_exists() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let before = (world.news.all(), world.names());
        let request = Request { model: Some("nobody/small".parse().unwrap()), ..Request::new("go") };
        let error = world.subagents.start(&parent, "spawn", request).await.unwrap_err();
        assert!(matches!(error, StartError::Model(_)));
        let want = "the child's model cannot be used: no model provider named `nobody`; there are: ";
        assert!(error.to_string().starts_with(want) && error.to_string().contains("offline"), "{error}");
        assert_eq!((world.news.all(), world.names()), before);
        world.app.close().await.unwrap();
    })
    .await;
}
