//! The core's own vocabulary. Plugins add theirs with [`Sessions::learn`](crate::Sessions::learn).

mod inbox;
mod message;
mod tool;
mod turn;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use inbox::{Delivery, InboxAccepted, InboxClaimed, InboxDiscarded};
pub use message::{AssistantMessage, Source, UserMessage};
pub use tool::{ToolCalled, ToolErrorCode, ToolReturned};
pub use turn::{HeaderReason, RequestHeader, RequestHeaderEvent, StepEnd, StepStart, TurnEnd, TurnReason, TurnStart};

use crate::{Payload, TagTaken, Vocabulary};

/// What the session is called, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionTitle {
    /// One short line.
    pub title: Arc<str>,
    /// Who named it: `user`, `model` or `prompt`.
    pub source: Arc<str>,
}

impl Payload for SessionTitle {
    const TAG: &'static str = "session/title";
}

/// The end of the history that a fork copied. Written only by the session itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSeed {}

impl Payload for EndSeed {
    const TAG: &'static str = "session/end-seed";
    const DECISIVE: bool = true;
}

/// Teaches a vocabulary the types of this crate.
pub(crate) fn learn_core(vocabulary: &mut Vocabulary) -> Result<(), TagTaken> {
    vocabulary.learn::<TurnStart>()?;
    vocabulary.learn::<TurnEnd>()?;
    vocabulary.learn::<StepStart>()?;
    vocabulary.learn::<StepEnd>()?;
    vocabulary.learn::<RequestHeaderEvent>()?;
    vocabulary.learn::<UserMessage>()?;
    vocabulary.learn::<AssistantMessage>()?;
    vocabulary.learn::<ToolCalled>()?;
    vocabulary.learn::<ToolReturned>()?;
    vocabulary.learn::<InboxAccepted>()?;
    vocabulary.learn::<InboxClaimed>()?;
    vocabulary.learn::<InboxDiscarded>()?;
    vocabulary.learn::<SessionTitle>()?;
    vocabulary.learn::<EndSeed>()
}
