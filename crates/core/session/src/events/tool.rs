use std::sync::Arc;

use llm::{Content, Message, Role};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Payload;

/// A tool is about to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCalled {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: u32,
    /// Pairs it with its result.
    pub call_id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The raw string that the model produced.
    pub arguments: Arc<str>,
}

impl Payload for ToolCalled {
    const TAG: &'static str = "tool/call";
}

/// What a tool answered. One for every call, in the order in which the model asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReturned {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: u32,
    /// The call.
    pub call_id: Arc<str>,
    /// What the model sees.
    pub content: Vec<Content>,
    /// Whether it failed.
    pub is_error: bool,
    /// What kind of failure, for code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorCode>,
    /// What front doors and parents want to know besides, by the tool's own schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Arc<RawValue>>,
}

/// A kind of failure, by a stable name such as `sandbox-denied`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolErrorCode {
    /// The name.
    pub code: Arc<str>,
}

impl Payload for ToolReturned {
    const TAG: &'static str = "tool/result";
    const SHOWN: bool = true;

    fn message(&self) -> Option<Arc<Message>> {
        let Self { call_id, content, is_error, .. } = self;
        let result = Content::ToolResult { call_id: call_id.clone(), content: content.clone(), is_error: *is_error };
        Some(Arc::new(Message { role: Role::Tool, content: vec![result] }))
    }
}
