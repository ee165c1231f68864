//! What stands in: a gate, a model that calls what it likes, strangers' providers.

use std::sync::Arc;

use async_trait::async_trait;
use context::Scope;
use futures_util::FutureExt as _;
use llm::{Chunk, Content, Finish, LlmAdapter, Reply, Role, ToolCall, ToolSchema};
use subagent::{RunResult, Start, StartError, Started, SubagentProvider};
use tokio::sync::{oneshot, watch};
use tools::{Call, Concurrency, Tool, ToolOutput, code};

use crate::stage::named;

/// The tool `gate`: a call waits until it is opened.
pub(crate) struct Gate {
    schema: ToolSchema,
    open: watch::Sender<bool>,
    arrived: watch::Sender<usize>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        let input_schema = Arc::new(serde_json::json!({"type": "object"}));
        let schema = ToolSchema { name: "gate".into(), description: "For tests.".into(), input_schema };
        Arc::new(Self { schema, open: watch::Sender::new(false), arrived: watch::Sender::new(0) })
    }

    pub(crate) fn put_into(self: &Arc<Self>, app: &Scope) {
        named::<dyn Tool>(app, "gate", self.clone());
    }

    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until so many calls have come.
    pub(crate) async fn arrived(&self, count: usize) {
        self.arrived.subscribe().wait_for(|arrived| *arrived >= count).await.unwrap();
    }
}

#[async_trait]
impl Tool for Gate {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        self.arrived.send_modify(|arrived| *arrived += 1);
        let mut open = self.open.subscribe();
        match call.cancelled.run_until_cancelled(open.wait_for(|open| *open)).await {
            Some(_) => ToolOutput::text("passed"),
            None => ToolOutput::error(code::CANCELLED, "turned back"),
        }
    }
}

/// A model that calls a tool whether or not it is offered, and then says what it was answered.
pub(crate) struct Stubborn(pub(crate) &'static str, pub(crate) &'static str);

impl LlmAdapter for Stubborn {
    fn reply(&self, request: llm::Request) -> Reply {
        let last = request.messages.iter().last().expect("a prompt");
        let chunk = match (last.role, last.content.first()) {
            (Role::Tool, Some(Content::ToolResult { content, .. })) => {
                Chunk::Text(content.iter().filter_map(Content::as_text).collect::<String>().into())
            }
            _ => Chunk::ToolCall(ToolCall { call_id: "1".into(), name: self.0.into(), arguments: self.1.into() }),
        };
        llm::replied([chunk, Chunk::End(Finish::Stop)])
    }
}

/// The model `offline/script`, whose words behind a call's answer come when the gate is opened.
pub(crate) struct Late(pub(crate) Arc<Gate>);

impl LlmAdapter for Late {
    fn reply(&self, request: llm::Request) -> Reply {
        let gate = self.0.clone();
        let answered = request.messages.iter().last().is_some_and(|last| last.role == Role::Tool);
        let reply = async move {
            if answered {
                gate.arrived.send_modify(|arrived| *arrived += 1);
                gate.open.subscribe().wait_for(|open| *open).await.unwrap();
            }
            llm_script::Script.reply(request)
        };
        Box::pin(reply.flatten_stream())
    }
}

/// A kind of child from a stranger's crate, which can honour nothing that is optional.
pub(crate) struct Stranger {
    pub(crate) inherits: bool,
}

#[async_trait]
impl SubagentProvider for Stranger {
    fn inherits_parent_context(&self) -> bool {
        self.inherits
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        let echo = RunResult::completed(vec![Content::text(format!("You said: {}", start.request.prompt))]);
        Ok(Started::elsewhere(std::future::ready(echo)))
    }
}

/// A child that ends when the test says so.
pub(crate) struct Slow(pub(crate) std::sync::Mutex<Option<oneshot::Receiver<()>>>);

#[async_trait]
impl SubagentProvider for Slow {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        let end = self.0.lock().unwrap().take().expect("one child");
        Ok(Started::elsewhere(async move {
            end.await.unwrap();
            RunResult::completed(vec![Content::text("at last")])
        }))
    }
}

/// A start that is never done.
pub(crate) struct Endless(pub(crate) watch::Sender<bool>);

#[async_trait]
impl SubagentProvider for Endless {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        self.0.send_replace(true);
        std::future::pending().await
    }
}

/// Has a bug.
pub(crate) struct Panics;

#[async_trait]
impl SubagentProvider for Panics {
    fn inherits_parent_context(&self) -> bool {
        panic!("it does not know")
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        unreachable!("nobody offers it")
    }
}
