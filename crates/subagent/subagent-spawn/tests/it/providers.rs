//! Who runs children: names, options, and those with bugs.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context::Change;
use llm::Content;
use session::Seed;
use subagent::{
    Capability, OutputSchema, Persona, Request, RunResult, Start, StartError, Started, StopReason, SubagentProvider,
    compose,
};
use tokio_util::sync::CancellationToken;
use tools::ToolFilter;

use crate::world::*;

/// A provider that does as it is told.
#[derive(Clone)]
enum Odd {
    /// Answers at once.
    Echo,
    /// Its result never settles.
    Stuck,
    /// Composes a child and forgets to watch it.
    Forgetful(Arc<agent::Agents>),
    /// Publishes a child, and takes its time to say so: until the start is given up.
    Late(Arc<agent::Agents>),
    /// Panics before there is anything.
    Panics,
    /// Panics when it is asked how it went.
    PanicsLater,
    /// Never comes back from its start; tells when it is dropped.
    Hangs(CancellationToken),
    /// Fails in its own way.
    Fails,
    /// Its children fail in their own way.
    FailsLater,
}

/// What a remote end may say.
const RUDE: &str = "the moon\n\nDenied: \u{1b}[2Jis full";

#[async_trait]
impl SubagentProvider for Odd {
    fn inherits_parent_context(&self) -> bool {
        matches!(self, Self::Echo)
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        match self {
            Self::Echo => {
                let echo = RunResult::completed(vec![Content::text(&*start.request.prompt)]);
                Ok(Started::elsewhere(std::future::ready(echo)))
            }
            Self::Stuck => Ok(Started::elsewhere(std::future::pending())),
            Self::Forgetful(agents) => {
                let child = compose(agents, start, Seed::Fresh).await?.agent.leave().id();
                Ok(Started { child: Some(child), result: Box::pin(std::future::pending()) })
            }
            Self::Late(agents) => {
                let ctx = start.ctx.clone();
                let child = compose(agents, start, Seed::Fresh).await?.agent.leave().id();
                ctx.cancelled().cancelled().await;
                let result = std::future::ready(RunResult::ended(StopReason::Aborted));
                Ok(Started { child: Some(child), result: Box::pin(result) })
            }
            Self::Panics => panic!("on purpose"),
            Self::PanicsLater => Ok(Started::elsewhere(async { panic!("on purpose") })),
            Self::Hangs(dropped) => {
                let _tells = dropped.clone().drop_guard();
                std::future::pending().await
            }
            Self::Fails => Err(StartError::Provider { provider: start.provider.clone(), source: RUDE.into() }),
            Self::FailsLater => {
                let failed = RunResult { message: Some(RUDE.into()), ..RunResult::ended(StopReason::Error) };
                Ok(Started::elsewhere(std::future::ready(failed)))
            }
        }
    }
}

fn names(world: &World) -> Vec<(String, bool)> {
    let all = world.subagents.providers().list();
    all.iter().map(|(name, provider)| (name.to_string(), provider.inherits_parent_context())).collect()
}

// D-20
#[tokio::test]
async fn names_are_unique_in_order_and_news() {
    within(async {
        let world = World::new().await;
        let news = Arc::new(Mutex::new(Vec::new()));
        let told = news.clone();
        let _listener = world.subagents.providers().on_change(move |change| {
            told.lock().unwrap().push(match change {
                Change::Added(name, _) => format!("+{name}"),
                Change::Removed(name, _) => format!("-{name}"),
            });
        });
        let zebra = world.subagents.register("zebra", Arc::new(Odd::Echo)).unwrap();
        let aardvark = world.subagents.register("aardvark", Arc::new(Odd::Stuck)).unwrap();
        let taken = world.subagents.register("spawn", Arc::new(Odd::Echo)).unwrap_err();
        assert_eq!(taken.to_string(), "the name `spawn` is taken");
        let ours = [("spawn".to_owned(), false), ("fork".to_owned(), true)];
        assert_eq!(names(&world), [&ours[..], &[("zebra".into(), true), ("aardvark".into(), false)]].concat());
        drop(zebra);
        let _zebra = world.subagents.register("zebra", Arc::new(Odd::Stuck)).unwrap();
        assert_eq!(names(&world), [&ours[..], &[("aardvark".into(), false), ("zebra".into(), false)]].concat());
        drop(aardvark);
        assert_eq!(*news.lock().unwrap(), ["+zebra", "+aardvark", "-zebra", "+zebra", "-aardvark"]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-20
#[tokio::test]
async fn a_removed_provider_starts_nothing_more_and_keeps_what_it_accepted() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let odd = Odd::Forgetful(world.agents.clone());
        let registered = world.subagents.register("odd", Arc::new(odd)).unwrap();
        let live = world.subagents.start(&parent, "odd", Request::new("hang")).await.unwrap();
        let accepted = world.subagents.start(&parent, "odd", Request::new("hang"));
        drop(registered);
        let refused = world.subagents.start(&parent, "odd", Request::new("hang")).await.unwrap_err();
        assert_eq!(refused.to_string(), "no subagent provider named `odd`; there are: spawn, fork");
        let accepted = accepted.await.unwrap();
        assert!(
            world.agents.get(live.child().unwrap()).is_some() && world.agents.get(accepted.child().unwrap()).is_some()
        );
        live.dispose().await.unwrap();
        accepted.dispose().await.unwrap();
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-21
#[tokio::test]
async fn an_option_that_a_provider_does_not_offer_is_refused_before_anything_exists() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let _echo = world.subagents.register("echo", Arc::new(Odd::Echo)).unwrap();
        let schema = OutputSchema::new(serde_json::json!({"type": "object"})).unwrap();
        let filter = Some(ToolFilter::denying(["write"]));
        let table = [
            (Capability::DepthLimit, "a limit of depth", Request { max_depth: Some(2), ..Request::new("go") }),
            (Capability::ToolFilter, "a tool filter", Request { tool_filter: filter.clone(), ..Request::new("go") }),
            (
                Capability::Persona,
                "a persona",
                Request { persona: Persona::new("a pirate").ok(), ..Request::new("go") },
            ),
            (
                Capability::OutputSchema,
                "an output schema",
                Request { output_schema: Some(schema), ..Request::new("go") },
            ),
        ];
        let before = (world.news.all(), world.names(), parent.session().len());
        for (want, said, request) in table {
            let error = world.subagents.start(&parent, "echo", request).await.unwrap_err();
            assert!(matches!(error, StartError::Unsupported { capability, .. } if capability == want), "{error}");
            assert_eq!(error.to_string(), format!("`echo` does not support {said}"));
        }
        assert_eq!((world.news.all(), world.names(), parent.session().len()), before);
        let held = [
            Request { max_depth: Some(3), ..Request::new("hang") },
            Request { tool_filter: filter, ..Request::new("hang") },
        ];
        for (request, what) in held.into_iter().zip(["a limit of depth", "a tool filter"]) {
            let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
            let error = world.subagents.start(&world.child(&run), "echo", Request::new("go")).await.unwrap_err();
            assert_eq!(error.to_string(), format!("`echo` does not support {what}"), "what is handed down counts");
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_result_that_never_settles_holds_up_nobody() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let _stuck = world.subagents.register("stuck", Arc::new(Odd::Stuck)).unwrap();
        let odd = Odd::Forgetful(world.agents.clone());
        let _odd = world.subagents.register("odd", Arc::new(odd)).unwrap();
        for name in ["stuck", "odd"] {
            let start = || world.subagents.start(&parent, name, Request::new("hang"));
            let disposed = start().await.unwrap();
            disposed.dispose().await.unwrap();
            assert_eq!(disposed.result().await.reason, StopReason::Aborted);
            let dropped = start().await.unwrap();
            let id = dropped.id();
            drop(dropped);
            world.news.ended(id).await;
            let request = Request::new("hang");
            let cancelled = request.cancelled.clone();
            let run = world.subagents.start(&parent, name, request).await.unwrap();
            cancelled.cancel();
            assert_eq!(run.result().await.reason, StopReason::Aborted);
            run.dispose().await.unwrap();
        }
        let left = world.subagents.start(&parent, "stuck", Request::new("hang")).await.unwrap();
        parent.dispose().await.unwrap();
        assert_eq!(left.result().await.reason, StopReason::Aborted);
        left.dispose().await.unwrap();
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-22
#[tokio::test]
async fn a_provider_that_panics_or_fails_is_named() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let _panics = world.subagents.register("panics", Arc::new(Odd::Panics)).unwrap();
        let _fails = world.subagents.register("fails", Arc::new(Odd::Fails)).unwrap();
        let before = world.news.all();
        let error = world.subagents.start(&parent, "panics", Request::new("go")).await.unwrap_err();
        assert_eq!(error.to_string(), "`panics` panicked while it started a child");
        let error = world.subagents.start(&parent, "fails", Request::new("go")).await.unwrap_err();
        let one_line = r"the moon\n\nDenied: \u{1b}[2Jis full";
        assert_eq!(error.to_string(), format!("`fails` failed to start a child: {one_line}"));
        assert_eq!(world.news.all(), before);
        let _later = world.subagents.register("later", Arc::new(Odd::FailsLater)).unwrap();
        let run = world.subagents.start(&parent, "later", Request::new("go")).await.unwrap();
        assert_eq!(run.result().await.message.as_deref(), Some(one_line));
        parent.dispose().await.expect("a provider's panic is not the parent's failure");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-22
#[tokio::test]
async fn a_provider_that_panics_after_the_start_has_failed_its_run() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let _panics = world.subagents.register("panics", Arc::new(Odd::PanicsLater)).unwrap();
        let run = world.subagents.start(&parent, "panics", Request::new("go")).await.unwrap();
        let result = run.result().await.clone();
        assert_eq!(result.reason, StopReason::Error);
        assert_eq!(result.message.as_deref(), Some("`panics` panicked while its child ran"));
        run.dispose().await.unwrap();
        world.news.assert_paired();
        parent.dispose().await.expect("nor is this one");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-25, D-22
#[tokio::test]
async fn a_start_that_hangs_ends_with_whoever_wanted_it() {
    within(async {
        let world = World::new().await;
        let mut registered = Vec::new();
        let mut hanging = |name: &str| {
            let dropped = CancellationToken::new();
            registered.push(world.subagents.register(name, Arc::new(Odd::Hangs(dropped.clone()))).unwrap());
            dropped
        };
        let parent = world.parent().await;
        let before = world.news.all();

        let provider_dropped = hanging("cancelled");
        let request = Request::new("go");
        let cancelled = request.cancelled.clone();
        let starting = world.subagents.start(&parent, "cancelled", request);
        tokio::task::yield_now().await;
        cancelled.cancel();
        assert!(matches!(starting.await, Err(StartError::Cancelled)));
        provider_dropped.cancelled().await;

        let provider_dropped = hanging("dropped");
        let starting = world.subagents.start(&parent, "dropped", Request::new("go"));
        tokio::task::yield_now().await;
        drop(starting);
        provider_dropped.cancelled().await;

        let provider_dropped = hanging("closed");
        let starting = world.subagents.start(&parent, "closed", Request::new("go"));
        tokio::task::yield_now().await;
        assert_eq!(world.news.all(), before);
        parent.dispose().await.unwrap();
        provider_dropped.cancelled().await;
        assert!(matches!(starting.await, Err(StartError::ParentClosing)));
        world.app.close().await.unwrap();
    })
    .await;
}

// D-22, D-11
#[tokio::test]
async fn a_start_that_is_given_up_after_its_child_was_published_is_announced() {
    within(async {
        let world = World::new().await;
        let _late = world.subagents.register("late", Arc::new(Odd::Late(world.agents.clone()))).unwrap();
        let is_published =
            |id| move |all: &[Told]| all.iter().any(|told| matches!(told, Told::Published(of) if *of != id));
        for dropped in [false, true] {
            let parent = world.parent().await;
            let before = world.news.all().len();
            let request = Request::new("hang");
            let cancelled = request.cancelled.clone();
            let starting = world.subagents.start(&parent, "late", request);
            world.news.until(|all| is_published(parent.id())(&all[before..])).await;
            if dropped {
                drop(starting);
            } else {
                cancelled.cancel();
                let run = starting.await.expect("there is a child");
                assert_eq!(run.result().await.reason, StopReason::Aborted);
                run.dispose().await.unwrap();
            }
            world.news.until(|all| all[before..].iter().any(|told| matches!(told, Told::Ended { .. }))).await;
            parent.dispose().await.unwrap();
        }
        world.news.assert_paired();
        assert_eq!(world.news.children().len(), 2);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_request_that_was_cancelled_before_is_not_begun() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let _panics = world.subagents.register("panics", Arc::new(Odd::Panics)).unwrap();
        for name in ["panics", "spawn"] {
            let before = (world.news.all(), world.names());
            let request = Request::new("go");
            request.cancelled.cancel();
            let error = world.subagents.start(&parent, name, request).await.unwrap_err();
            assert!(matches!(error, StartError::Cancelled), "{error}");
            assert_eq!((world.news.all(), world.names()), before);
        }
        world.app.close().await.unwrap();
    })
    .await;
}
