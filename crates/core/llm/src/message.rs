use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A person, or the harness on behalf of one.
    User,
    /// The model.
    Assistant,
    /// A tool that the model called.
    Tool,
}

/// A message as every model API can be given it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// What it says, in order.
    pub content: Vec<Content>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: Box<str>,
    },
    /// A picture.
    Image {
        /// As in `image/png`.
        media_type: Box<str>,
        /// The bytes, in base64.
        data: Box<str>,
    },
    /// What the model thought before it spoke. Sent back only to the provider that signed it.
    Thinking {
        /// The thought.
        text: Box<str>,
        /// The provider's seal on it, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Box<str>>,
    },
    /// The model wants a tool run.
    ToolCall(ToolCall),
    /// What a tool answered.
    ToolResult {
        /// The call that this answers.
        call_id: Arc<str>,
        /// Text and images.
        content: Vec<Content>,
        /// Whether the tool failed.
        is_error: bool,
    },
}

/// A model's wish to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub call_id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The arguments as the model wrote them: usually JSON, never trusted to be.
    pub arguments: Arc<str>,
}

impl Message {
    /// A user's text.
    pub fn user(text: impl Into<Box<str>>) -> Self {
        Self { role: Role::User, content: vec![Content::text(text)] }
    }

    /// A model's text.
    pub fn assistant(text: impl Into<Box<str>>) -> Self {
        Self { role: Role::Assistant, content: vec![Content::text(text)] }
    }

    /// Its text parts, joined by nothing. Thoughts and tool traffic are not text.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect()
    }

    /// Its text without a copy where there is one part only.
    pub fn text_cow(&self) -> Cow<'_, str> {
        match &self.content[..] {
            [Content::Text { text }] => Cow::Borrowed(text),
            _ => Cow::Owned(self.text()),
        }
    }

    /// The tools it asks for, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Content::ToolCall(call) => Some(call),
            Content::Text { .. } | Content::Image { .. } | Content::Thinking { .. } | Content::ToolResult { .. } => {
                None
            }
        })
    }
}

impl Content {
    /// A text part.
    pub fn text(text: impl Into<Box<str>>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Image { .. } | Self::Thinking { .. } | Self::ToolCall(_) | Self::ToolResult { .. } => None,
        }
    }
}
