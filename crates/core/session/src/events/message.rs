use std::sync::Arc;

use llm::{Content, Message, Role, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{MessageId, Payload};

/// Something said to the model: a prompt, a note of the harness, a report, a notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Unique in the log.
    pub id: MessageId,
    /// What the model sees.
    #[serde(rename = "content", serialize_with = "to_content", deserialize_with = "from_content")]
    pub message: Arc<Message>,
    /// Who put it there.
    pub source: Source,
}

impl Payload for UserMessage {
    const TAG: &'static str = "user/message";
    const SHOWN: bool = true;

    fn message(&self) -> Option<Arc<Message>> {
        Some(self.message.clone())
    }
}

/// Who put a message into the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Source {
    /// A person, or whoever acts for one: the parent, for a child.
    Prompt,
    /// The harness, about facts that change.
    RuntimeContext,
    /// A child, to its parent.
    Report,
    /// The harness, about something that happened.
    Notice,
    /// Someone that this version does not know.
    #[serde(other)]
    Other,
}

/// What the model said in one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: u32,
    /// What it said, tool calls included.
    pub message: Arc<Message>,
    /// What it cost, where the provider told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Whether it was cut off: what had arrived is kept, calls that were not run are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl Payload for AssistantMessage {
    const TAG: &'static str = "assistant/message";
    const SHOWN: bool = true;

    fn message(&self) -> Option<Arc<Message>> {
        (!self.message.content.is_empty()).then(|| self.message.clone())
    }
}

pub(crate) fn to_content<S: Serializer>(message: &Arc<Message>, to: S) -> Result<S::Ok, S::Error> {
    message.content.serialize(to)
}

pub(crate) fn from_content<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<Message>, D::Error> {
    let content = Vec::<Content>::deserialize(from)?;
    Ok(Arc::new(Message { role: Role::User, content }))
}
