//! What the panel does, besides what every provider owes.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentPublished, Agents, Profile, Spec};
use bundle::{Policies, Settings};
use context::{Plugins, Scope};
use llm::{Chunk, Finish, LlmAdapter, Reply, Role, ToolCall, Usage};
use sandbox::Mode;
use sandbox_policy::{ModeSet, SandboxPolicy};
use session::{SessionId, Sessions};
use subagent::{Request, RunResult, StopReason, Subagents};
use third_party_provider::{Config, NAME, Panel, Reviewer};
use tokio::sync::Notify;
use tools::Tool;

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(60);

/// Drafts, revises where it was told what to revise, and reviews where that is what it is for.
struct Writer;

impl LlmAdapter for Writer {
    fn reply(&self, request: llm::Request) -> Reply {
        let last = request.messages.last().map_or_else(String::new, |message| message.text());
        let has_called = request.messages.last().is_some_and(|message| message.role == Role::Tool);
        if request.tools.iter().any(|tool| &*tool.name == "write") && !has_called {
            let arguments = r#"{"path":"a.txt","content":"x"}"#.into();
            let call = ToolCall { call_id: "1".into(), name: "write".into(), arguments };
            return llm::replied([Chunk::ToolCall(call), Chunk::End(Finish::Stop)]);
        }
        let text = match &*request.system {
            "You look at the length." if last.contains("a draft") => "too long".to_owned(),
            "You look at the sense." => "fine".to_owned(),
            "You take your time." => return Box::pin(futures_util::stream::pending()),
            _ if last.contains("length: too long") && last.contains("sense: fine") => "a short answer".to_owned(),
            _ => "a draft".to_owned(),
        };
        let cost = Usage { input_tokens: 10, output_tokens: 1, cached_input_tokens: 0 };
        llm::replied([Chunk::Text(text.into()), Chunk::Usage(cost), Chunk::End(Finish::Stop)])
    }
}

struct World {
    app: Scope,
    parent: Agent,
    subagents: Arc<Subagents>,
}

impl World {
    async fn with(config: Config) -> Self {
        Self::over(bundle::spine(Policies::default()).with(Panel, config), "/").await
    }

    async fn over(plugins: Plugins, directory: &str) -> Self {
        let app = Scope::root("app");
        app.register::<dyn LlmAdapter>("writer", Arc::new(Writer)).unwrap();
        plugins.start(&app).await.unwrap();
        let session = app.get::<Sessions>().unwrap().create(directory);
        let spec = Spec::new(session, Profile::of("writer/any".parse().unwrap()));
        let parent = app.get::<Agents>().unwrap().create(&app, spec).await.unwrap();
        let subagents = app.get().unwrap();
        Self { app, parent, subagents }
    }

    async fn ask(&self, request: Request) -> RunResult {
        let run = self.subagents.start(&self.parent, NAME, request).await.unwrap();
        let result = run.result().await.clone();
        run.dispose().await.unwrap();
        result
    }
}

fn two() -> Config {
    let reviewers = [("length", "You look at the length."), ("sense", "You look at the sense.")];
    let reviewers = reviewers.map(|(label, persona)| Reviewer::new(label, persona).unwrap()).into();
    Config { reviewers, ..Config::default() }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("done before the deadline")
}

#[tokio::test]
async fn a_draft_is_revised_by_what_was_said_of_it() {
    within(async {
        let world = World::with(two()).await;
        let result = world.ask(Request::new("write something")).await;
        assert_eq!((result.reason, &*result.text(), &result.message), (StopReason::Completed, "a short answer", &None));
        let cost = (result.usage.input_tokens, result.usage.output_tokens);
        assert_eq!(cost, (20, 2), "both turns of the author's, and nobody else's");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-08
#[tokio::test]
async fn reviewers_are_held_to_what_the_panel_was_handed() {
    within(async {
        let world = World::with(two()).await;
        let (agents, policy) = (world.app.get::<Agents>().unwrap(), world.app.get::<SandboxPolicy>().unwrap());
        let seen = Arc::new(std::sync::Mutex::new(Vec::<(SessionId, Mode, u32)>::new()));
        let sees = seen.clone();
        let _listener = agents.realm().on(move |AgentPublished(agent)| {
            let session = agent.session();
            sees.lock().unwrap().push((agent.id(), policy.effective(session), session.header().depth()));
        });
        world.parent.session().append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        let starting = world.subagents.start(&world.parent, NAME, Request::new("write something"));
        world.parent.session().append(ModeSet::by_user(Mode::DangerFullAccess)).unwrap();
        let run = starting.await.unwrap();
        run.result().await;
        run.dispose().await.unwrap();
        let modes: Vec<(Mode, u32)> = seen.lock().unwrap().iter().map(|(_, mode, depth)| (*mode, *depth)).collect();
        assert_eq!(modes, [(Mode::WorkspaceWrite, 1), (Mode::WorkspaceWrite, 2), (Mode::WorkspaceWrite, 2)]);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-23
#[tokio::test]
async fn a_panel_that_is_stopped_while_it_reviews_has_no_answer() {
    within(async {
        let reviewers = vec![Reviewer::new("time", "You take your time.").unwrap()];
        let world = World::with(Config { reviewers, ..Config::default() }).await;
        let (reviewing, request) = (Arc::new(Notify::new()), Request::new("write something"));
        let begins = reviewing.clone();
        let _listener = world.app.realm().on(move |AgentPublished(agent)| {
            if agent.session().header().depth() == 2 {
                begins.notify_one();
            }
        });
        let cancelled = request.cancelled.clone();
        let run = world.subagents.start(&world.parent, NAME, request).await.unwrap();
        reviewing.notified().await;
        cancelled.cancel();
        let result = run.result().await;
        assert_eq!((result.reason, &*result.text()), (StopReason::Aborted, "a draft"));
        run.dispose().await.unwrap();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn what_was_denied_to_anybody_is_told() {
    within(async {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (home, root) = (top.join("home"), top.join("root"));
        std::fs::create_dir(&root).unwrap();
        let plugins = bundle::full(Settings::new(home)).with(Panel, two());
        let world = World::over(plugins, root.to_str().unwrap()).await;
        let result = world.ask(Request::new("write something")).await;
        assert_eq!((result.reason, &*result.text()), (StopReason::Completed, "a draft"));
        assert_eq!(result.denials.total, 4, "two of the author's, in two turns, and one of each reviewer's");
        let mut who: Vec<SessionId> = result.denials.list.iter().map(|denial| denial.session).collect();
        who.sort();
        who.dedup();
        assert_eq!(who.len(), 3);
        assert!(!root.join("a.txt").exists());
        world.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn without_reviewers_the_draft_stands_and_says_why() {
    within(async {
        let world = World::with(two()).await;
        let result = world.ask(Request { max_depth: Some(1), ..Request::new("write something") }).await;
        assert_eq!((result.reason, &*result.text()), (StopReason::Completed, "a draft"));
        let why =
            "not reviewed for length: a child at depth 2 would pass the limit of 1; sense: a child at depth 2 would";
        assert!(result.message.as_deref().is_some_and(|message| message.starts_with(why)), "{:?}", result.message);
        world.app.close().await.unwrap();

        let world = World::with(Config { provider: "nobody".into(), ..two() }).await;
        let result = world.ask(Request::new("write something")).await;
        assert_eq!(&*result.text(), "a draft");
        assert!(result.message.unwrap().contains("no subagent provider named `nobody`"));
        world.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_tool_is_bound_to_the_panel_by_name() {
    within(async {
        let app = Scope::root("app");
        let tool = tool_subagent::Config::new("ask_panel", NAME);
        let plugins = bundle::spine(Policies::default()).with(Panel, Config::default());
        plugins.with(tool_subagent::SubagentTool, tool).start(&app).await.unwrap();
        let tool = app.realm().named::<dyn Tool>("ask_panel").expect("the provider is there, so the tool is");
        assert!(tool.schema().description.contains("an empty conversation"), "as the provider says of itself");
        app.close().await.unwrap();
    })
    .await;
}
