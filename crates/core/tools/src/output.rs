use std::sync::Arc;

use llm::Content;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Stable names of failures, for code.
pub mod code {
    /// No tool has the name that the model called.
    pub const UNKNOWN_TOOL: &str = "unknown-tool";
    /// The arguments do not fit the schema.
    pub const INVALID_ARGUMENTS: &str = "invalid-arguments";
    /// The tool panicked.
    pub const PANICKED: &str = "panicked";
    /// The turn was cancelled.
    pub const CANCELLED: &str = "cancelled";
    /// The tool tried and failed.
    pub const FAILED: &str = "failed";
    /// The sandbox does not allow it. The meta says what, as a `sandbox::Denial`.
    pub const SANDBOX_DENIED: &str = "sandbox-denied";
    /// A wider scope was asked for and not granted.
    pub const ESCALATION: &str = "escalation";
}

/// What a tool answers.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// What the model sees.
    pub content: Vec<Content>,
    /// The kind of failure; `None` if there was none.
    pub error: Option<Arc<str>>,
    /// What front doors and parents want to know besides.
    pub meta: Option<Arc<RawValue>>,
    /// Whether the model is to be asked again. A tool that captures a result ends the turn.
    pub then: Then,
}

/// What happens after the calls of a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    /// The model sees the results.
    #[default]
    Continue,
    /// The turn is completed.
    EndTurn,
}

impl ToolOutput {
    /// A good answer.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self { content: vec![Content::text(text)], error: None, meta: None, then: Then::Continue }
    }

    /// A failure, by its [`code`], told so that the model can act on it.
    pub fn error(code: &str, text: impl Into<Box<str>>) -> Self {
        Self { error: Some(code.into()), ..Self::text(text) }
    }

    /// With something for front doors and parents.
    #[must_use]
    pub fn with_meta(mut self, meta: &impl Serialize) -> Self {
        self.meta = Some(to_raw_value(meta).expect("meta serializes to memory").into());
        self
    }

    /// Whether it is a failure.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// Its text parts together.
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }
}
