//! An app with the loop, a scripted model and tools made of functions; and what a valid log is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::*;
use agent_loop::AgentLoop;
use async_trait::async_trait;
use context::{Boxed, Plugins, Scope};
use llm::{Content, LlmAdapter, Message, Role, ToolSchema};
use session::*;
use system_prompt::RuntimeFact;
use tools::{Call, Concurrency, Tool, ToolOutput};

use crate::model::Model;

/// Far longer than any of these tests takes, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Everything since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        1_790_000_000_123
    }
}

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) model: Arc<Model>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let app = Scope::root("app");
        let model = Arc::new(Model::default());
        app.register::<dyn LlmAdapter>("test", model.clone()).unwrap();
        Plugins::new().with(AgentLoop, ()).start(&app).await.unwrap();
        let agents = Agents::new(&app);
        Self { app, sessions: Sessions::with_clock(Arc::new(Still)), agents, model }
    }

    /// A stage and an agent on it.
    pub(crate) async fn with_agent() -> (Self, Agent) {
        let stage = Self::new().await;
        let agent = stage.agent().await;
        (stage, agent)
    }

    pub(crate) async fn agent(&self) -> Agent {
        self.agent_of(self.sessions.create("/home/me/project")).await
    }

    pub(crate) async fn agent_of(&self, session: Session) -> Agent {
        let spec = Spec::new(session, Profile::of("test/model".parse().unwrap()));
        in_time(self.agents.create(&self.app, spec)).await.unwrap()
    }

    /// Registers a tool in the app.
    pub(crate) fn tool<F>(&self, name: &str, body: impl Fn(Call) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ToolOutput> + Send + 'static,
    {
        self.app.register::<dyn Tool>(name, fake(name, body)).unwrap();
    }

    /// Registers tools that answer with their own names.
    pub(crate) fn tools(&self, names: &[&'static str]) {
        for &name in names {
            self.tool(name, move |_| async move { ToolOutput::text(format!("{name} ran")) });
        }
    }

    /// Ends the agent, reads its log again and goes on with it.
    pub(crate) async fn resumed(&self, agent: Agent) -> Agent {
        in_time(agent.dispose()).await.unwrap();
        self.agent_of(self.reopened(agent.session())).await
    }

    pub(crate) fn reopened(&self, session: &Session) -> Session {
        let decoded = self.sessions.vocabulary().decode(log_text(&session.snapshot())).unwrap();
        self.sessions.resume(decoded).unwrap()
    }

    pub(crate) async fn close(self) {
        in_time(self.app.close()).await.unwrap();
    }
}

/// A turn of its own for a text, to its end.
pub(crate) async fn turn(agent: &AgentRef, text: &str) -> TurnOutcome {
    let outcome = in_time(agent.followup(text).unwrap().outcome()).await;
    check_log(agent.session());
    outcome
}

type Body = dyn Fn(Call) -> Boxed<'static, ToolOutput> + Send + Sync;

struct Fake(ToolSchema, Box<Body>);

#[async_trait]
impl Tool for Fake {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        (self.1)(call.clone()).await
    }
}

pub(crate) fn fake<F>(name: &str, body: impl Fn(Call) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let input_schema = Arc::new(serde_json::json!({"type": "object"}));
    let schema = ToolSchema { name: name.into(), description: "A fake.".into(), input_schema };
    Arc::new(Fake(schema, Box::new(move |call| Box::pin(body(call)))))
}

/// A fact that the test changes.
#[derive(Clone, Default)]
pub(crate) struct Fact(Arc<Mutex<Option<String>>>);

impl Fact {
    pub(crate) fn set(&self, fact: Option<&str>) {
        *self.0.lock().unwrap() = fact.map(str::to_owned);
    }
}

impl RuntimeFact for Fact {
    fn order(&self) -> i32 {
        0
    }

    fn state(&self, _: &Session) -> Option<String> {
        self.0.lock().unwrap().clone()
    }
}

/// The types of the events from a `seq` on.
pub(crate) fn tags(session: &Session, from: u64) -> Vec<String> {
    session.snapshot().events_from(from).map(|event| event.tag().to_owned()).collect()
}

pub(crate) fn count(session: &Session, tag: &str) -> usize {
    tags(session, 0).iter().filter(|one| *one == tag).count()
}

/// The log's events, a line each, without seqs and times.
pub(crate) fn lines(session: &Session) -> String {
    let line = |event: &Event| {
        let line = event.to_json();
        let data = line.split_once(r#""data":"#).unwrap().1;
        format!("{} {}\n", event.tag(), &data[..data.len() - 1])
    };
    session.snapshot().events().iter().map(line).collect()
}

/// The file, as a store would write it.
pub(crate) fn log_text(log: &Snapshot) -> String {
    let mut text = serde_json::to_string(&**log.header()).unwrap();
    for event in log.events().iter() {
        text += "\n";
        text += &event.to_json();
    }
    text + "\n"
}

pub(crate) fn messages(session: &Session) -> Vec<String> {
    session.messages().unwrap().iter().map(|message| crate::model::shown(message)).collect()
}

pub(crate) fn error_of(outcome: &TurnOutcome) -> &str {
    match &outcome.reason {
        TurnReason::Error { message: Some(message) } => {
            assert!(!message.contains('\n'), "in one line: {message}");
            message
        }
        other => panic!("{other:?}"),
    }
}

/// Between turns: every turn, step and call is closed, in order, and the history is one that every model API takes.
pub(crate) fn check_log(session: &Session) {
    let (mut turn, mut step, mut calls) = (None, None, VecDeque::new());
    let mut ids = std::collections::HashSet::new();
    let log = session.snapshot();
    for event in log.events().iter() {
        if let Some(start) = event.get::<TurnStart>() {
            assert_eq!(turn.replace(start.turn), None);
        } else if let Some(end) = event.get::<TurnEnd>() {
            assert_eq!((turn.take(), step, calls.is_empty()), (Some(end.turn), None, true), "{event:?}");
        } else if let Some(start) = event.get::<StepStart>() {
            assert_eq!((turn, step.replace(start.step)), (Some(start.turn), None), "{event:?}");
        } else if let Some(end) = event.get::<StepEnd>() {
            assert_eq!((turn, step.take()), (Some(end.turn), Some(end.step)), "{event:?}");
        } else if let Some(called) = event.get::<ToolCalled>() {
            assert_eq!((turn, step), (Some(called.turn), Some(called.step)));
            calls.push_back(called.call_id.clone());
        } else if let Some(result) = event.get::<ToolReturned>() {
            // What was never begun is answered too, when the turn is closed by others.
            let interrupted = result.error.as_ref().is_some_and(|error| *error.code == *"interrupted");
            if !(interrupted && calls.is_empty()) {
                assert_eq!(calls.pop_front().as_ref(), Some(&result.call_id), "in the model's order");
            }
        } else if let Some(message) = event.get::<UserMessage>() {
            assert!(ids.insert(message.id), "a message's id is its own: {event:?}");
            assert!(turn.is_some() && step.is_none(), "{event:?}");
        } else if event.get::<AssistantMessage>().is_some() {
            assert!(step.is_some(), "{event:?}");
        }
    }
    assert_eq!((turn, step, calls.len()), (None, None, 0), "nothing is open");
    let messages = session.messages().unwrap();
    check_history(messages.iter());
}

/// Every call has exactly one result behind it, in order, and no two replies follow each other.
pub(crate) fn check_history<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) {
    let mut open: VecDeque<Arc<str>> = VecDeque::new();
    let mut last = None;
    for message in messages {
        match message.role {
            Role::User => assert!(open.is_empty(), "{open:?} have no result before {message:?}"),
            Role::Assistant => {
                assert!(open.is_empty(), "{open:?} have no result before {message:?}");
                assert!(matches!(last, Some(Role::User | Role::Tool)), "a reply to nothing: {message:?}");
                assert!(!message.content.is_empty());
                open.extend(message.tool_calls().map(|call| call.call_id.clone()));
            }
            Role::Tool => {
                let [Content::ToolResult { call_id, .. }] = &message.content[..] else { panic!("{message:?}") };
                assert_eq!(open.pop_front().as_ref(), Some(call_id), "a result of nothing");
            }
        }
        last = Some(message.role);
    }
    assert!(open.is_empty(), "{open:?} have no result");
}
