use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use llm::{
    Assembled, Assembly, Chunk, Content, LlmAdapter, LlmError, Message, Request, Role, ToolCall, ToolSchema, replied,
};

/// Every tool that a statement of its own calls.
pub(crate) const TOOLS: [&str; 9] =
    ["read", "write", "edit", "list", "glob", "grep", "bash", "subagent", "subagent_fork"];

/// A conversation with an adapter, as an agent has it.
pub(crate) struct Talk<'a> {
    model: &'a dyn LlmAdapter,
    pub(crate) request: Request,
}

impl<'a> Talk<'a> {
    pub(crate) fn with(model: &'a dyn LlmAdapter, tools: &[&str]) -> Self {
        let schema = |name: &&str| ToolSchema {
            name: (*name).into(),
            description: "".into(),
            input_schema: Arc::new(serde_json::json!({"type": "object"})),
        };
        let mut request = Request::to("script");
        request.tools = tools.iter().map(schema).collect();
        Self { model, request }
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.request.messages.push(Arc::new(message));
    }

    /// Every chunk of the next reply, within an hour of paused time.
    pub(crate) async fn chunks(&self) -> Vec<Result<Chunk, LlmError>> {
        let reply = self.model.reply(self.request.clone());
        tokio::time::timeout(Duration::from_secs(3_600), reply.collect()).await.expect("the reply ends")
    }

    /// The next reply, which joins the conversation.
    pub(crate) async fn step(&mut self) -> Result<Assembled, LlmError> {
        let chunks: Vec<Chunk> = self.chunks().await.into_iter().collect::<Result<_, _>>()?;
        let assembled = Assembly::collect(replied(chunks)).await?;
        self.push(assembled.message.clone());
        Ok(assembled)
    }

    /// A turn: runs `tool` for every call until a reply has none, and returns the calls of each step and the answer.
    pub(crate) async fn turn(
        &mut self,
        prompt: &str,
        tool: impl Fn(&ToolCall) -> Result<String, String>,
    ) -> (Vec<Vec<ToolCall>>, String) {
        self.push(Message::user(prompt));
        let mut steps = Vec::new();
        loop {
            let message = self.step().await.expect("a reply that ends well").message;
            let calls: Vec<ToolCall> = message.tool_calls().cloned().collect();
            if calls.is_empty() {
                return (steps, message.text());
            }
            for call in &calls {
                let result = tool(call);
                self.push(answer(call, result));
            }
            self.push(Message::user("<runtime-context>a note of the harness</runtime-context>"));
            steps.push(calls);
        }
    }
}

fn answer(call: &ToolCall, result: Result<String, String>) -> Message {
    let (text, is_error) = match result {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    let content = vec![Content::text(text)];
    Message {
        role: Role::Tool,
        content: vec![Content::ToolResult { call_id: call.call_id.clone(), content, is_error }],
    }
}

/// Calls, one line a step.
pub(crate) fn shown(steps: &[Vec<ToolCall>]) -> Vec<String> {
    let call = |call: &ToolCall| format!("{} {}", call.name, call.arguments);
    steps.iter().map(|calls| calls.iter().map(call).collect::<Vec<_>>().join(" & ")).collect()
}
