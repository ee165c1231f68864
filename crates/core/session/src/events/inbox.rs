use std::sync::Arc;

use llm::Message;
use serde::{Deserialize, Serialize};

use super::Source;
use super::message::{from_content, to_content};
use crate::{MessageId, Payload};

/// A message that an agent has taken on. Once this is durable, the message is never lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxAccepted {
    /// The message's id from now on.
    pub id: MessageId,
    /// When it is to be read.
    pub delivery: Delivery,
    /// What it says.
    #[serde(rename = "content", serialize_with = "to_content", deserialize_with = "from_content")]
    pub message: Arc<Message>,
    /// Who sent it.
    pub source: Source,
}

impl Payload for InboxAccepted {
    const TAG: &'static str = "inbox/accepted";
    const DECISIVE: bool = true;
}

/// When a message is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// In a turn of its own, after those before it.
    Followup,
    /// At the next step of the open turn; without one, in a turn of its own.
    Steer,
    /// With whatever wakes the agent next; by itself it wakes nobody.
    Inject,
}

/// Messages go into a turn. From here on they are history, whatever becomes of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxClaimed {
    /// Which.
    pub ids: Vec<MessageId>,
}

impl Payload for InboxClaimed {
    const TAG: &'static str = "inbox/claimed";
    const DECISIVE: bool = true;
}

/// Messages that will never be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxDiscarded {
    /// Which.
    pub ids: Vec<MessageId>,
    /// Why.
    pub cause: Arc<str>,
}

impl Payload for InboxDiscarded {
    const TAG: &'static str = "inbox/discarded";
    const DECISIVE: bool = true;
}
