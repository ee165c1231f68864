//! Providers that misbehave, and what a parent is told of its child.

use std::sync::{Arc, Mutex};

use agent::Inbox;
use async_trait::async_trait;
use context::{Boxed, Plugins, Scope};
use llm::{Chunk, Finish, LlmAdapter, Reply, ToolCall, ToolSchema, replied};
use sandbox::{Mode, Operation};
use session::{SessionId, Sessions, ToolReturned, TurnReason};
use session_store::SessionStore as _;
use subagent::{
    ChildDenial, ChildEnded, ChildStarted, DelegationReport, Denials, Descriptor, Request, RunResult, Start,
    StartError, Started, StopReason, SubagentProvider, Subagents,
};
use tokio::sync::Notify;
use tool_subagent::{Config, SubagentTool};
use tools::{Call, Runner, Tool, ToolOutput};

use crate::support::{App, within};

/// Panics when it is called, before there is a future.
struct Hasty;

impl SubagentProvider for Hasty {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    fn start<'a, 'b>(&'a self, _: Start) -> Boxed<'b, Result<Started, StartError>>
    where
        'a: 'b,
        Self: 'b,
    {
        panic!("at the call")
    }
}

// D-11, D-22
#[tokio::test]
async fn a_provider_that_panics_at_the_call_is_named() {
    within(async {
        let app = App::new().await;
        let told = Arc::new(Mutex::new(0));
        let (started, ended) = (told.clone(), told.clone());
        let _started = app.scope.realm().on(move |_: &ChildStarted| *started.lock().unwrap() += 1);
        let _ended = app.scope.realm().on(move |_: &ChildEnded| *ended.lock().unwrap() += 1);
        let subagents = app.scope.get::<Subagents>().unwrap();
        let _hasty = subagents.register("hasty", Arc::new(Hasty)).unwrap();
        let parent = app.agent().await;
        let started = subagents.start(&parent, "hasty", Request::new("go")).await;
        match started {
            Err(StartError::Panicked { provider }) => assert_eq!(&*provider, "hasty"),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was started"),
        }
        assert_eq!(*told.lock().unwrap(), 0, "nothing was announced");
        assert_eq!(app.agents.list().len(), 1, "the parent");
        app.close().await;
    })
    .await;
}

async fn with_tool(app: &Scope, config: Config) {
    Plugins::new().with(SubagentTool, config).start(app).await.unwrap();
}

/// Lists more denials than it counts.
struct Lying;

#[async_trait]
impl SubagentProvider for Lying {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        let session = Sessions::new().create("/").id();
        let (operation, mode) = (Operation::Write, Mode::ReadOnly);
        let list = ["a.txt", "b.txt"].map(|target| ChildDenial { session, operation, target: target.into(), mode });
        let denials = Denials { list: list.into(), total: 1 };
        let result = RunResult { denials, ..RunResult::completed(Vec::new()) };
        Ok(Started::elsewhere(std::future::ready(result)))
    }
}

// D-32
#[tokio::test]
async fn denials_beyond_their_own_count_are_told() {
    within(async {
        let app = App::new().await;
        let subagents = app.scope.get::<Subagents>().unwrap();
        let _lying = subagents.register("lying", Arc::new(Lying)).unwrap();
        with_tool(&app.scope, Config::new("delegate", "lying")).await;
        let parent = app.agent().await;
        let arguments = r#"{"description":"a task","prompt":"do it"}"#;
        let call = Call::new(parent.ctx(), parent.session().clone(), "delegate", arguments);
        let output = Runner::new(parent.ctx().realm()).run(call).await;
        assert!(!output.is_error(), "{}", output.to_text());
        let told = "\n- write a.txt (mode read-only)\n- write b.txt (mode read-only)";
        assert!(output.to_text().ends_with(told), "{}", output.to_text());
        app.close().await;
    })
    .await;
}

// D-05
#[tokio::test]
async fn a_long_label_does_not_hide_the_descriptor_in_a_listing() {
    within(async {
        let (app, disk) = App::on_disk().await;
        with_tool(&app.scope, Config::default()).await;
        let child = Arc::new(Mutex::new(None::<SessionId>));
        let note = child.clone();
        let _started = app.scope.realm().on(move |started: &ChildStarted| *note.lock().unwrap() = started.child);
        let parent = app.agent().await;
        let arguments = serde_json::json!({"description": "é".repeat(20_000), "prompt": "do it"}).to_string();
        let call = Call::new(parent.ctx(), parent.session().clone(), "subagent", arguments);
        let output = Runner::new(parent.ctx().realm()).run(call).await;
        assert_eq!(output.to_text(), "hello");
        let child = child.lock().unwrap().expect("it has a session here");
        let summary = disk.store.summary(&app.sessions.vocabulary(), child).await.unwrap();
        assert!(summary.first.iter().any(|event| event.get::<Descriptor>().is_some()), "{:?}", summary.first);
        app.close().await;
    })
    .await;
}

/// Delegates; as the child, calls the tool `stuck`.
struct Delegating;

impl LlmAdapter for Delegating {
    fn reply(&self, request: llm::Request) -> Reply {
        let is_child = request.messages.iter().any(|message| message.text() == "be stuck");
        let (name, arguments) =
            if is_child { ("stuck", "{}") } else { ("subagent", r#"{"description":"a task","prompt":"be stuck"}"#) };
        let call = ToolCall { call_id: "call".into(), name: name.into(), arguments: arguments.into() };
        replied([Chunk::ToolCall(call), Chunk::End(Finish::Stop)])
    }
}

/// A tool that does not notice that it is cancelled.
struct Stuck {
    schema: ToolSchema,
    called: Arc<Notify>,
}

#[async_trait]
impl Tool for Stuck {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    async fn call(&self, _: &Call) -> ToolOutput {
        self.called.notify_one();
        std::future::pending().await
    }
}

// D-25, D-32
#[tokio::test(start_paused = true)]
async fn the_result_of_a_cancelled_parent_carries_its_child_s_report() {
    within(async {
        let (app, called) = (App::new().await, Arc::new(Notify::new()));
        with_tool(&app.scope, Config::default()).await;
        let input_schema = Arc::new(serde_json::json!({"type": "object"}));
        let schema = ToolSchema { name: "stuck".into(), description: "Waits.".into(), input_schema };
        let stuck = Stuck { schema, called: called.clone() };
        app.scope.register::<dyn Tool>("stuck", Arc::new(stuck)).unwrap();
        let ended = Arc::new(Mutex::new(Vec::new()));
        let note = ended.clone();
        let _ended = app.scope.realm().on(move |ended: &ChildEnded| note.lock().unwrap().push(ended.child));
        let parent = app.agent_with(Delegating).await;
        let receipt = parent.followup("go").unwrap();
        called.notified().await;
        parent.cancel("user", Inbox::Keep);
        let outcome = receipt.outcome().await;
        assert_eq!(outcome.reason, TurnReason::Aborted { cause: Some("user".into()) });

        let returned = parent.session().latest::<ToolReturned>().unwrap();
        let meta = returned.meta.as_ref().expect("the child's report");
        let report: DelegationReport = serde_json::from_str(meta.get()).unwrap();
        assert_eq!(report.stop_reason, StopReason::Aborted);
        assert!(report.child.is_some());
        assert_eq!(*ended.lock().unwrap(), [report.child], "the child ended before its parent's turn");
        assert_eq!(app.agents.list().len(), 1, "the parent");
        app.close().await;
    })
    .await;
}
