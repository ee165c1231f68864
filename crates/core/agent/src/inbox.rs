use std::sync::Arc;

use llm::{Content, Message, Role, Usage};
use session::{Delivery, MessageId, Source, TurnReason};
use tokio::sync::oneshot;

/// The most messages that may wait in one inbox.
pub const PENDING_LIMIT: usize = 1_000;

/// The most bytes that one message may have.
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

/// A message on its way to an agent.
#[derive(Clone, Debug)]
pub struct Input {
    /// What it says.
    pub message: Arc<Message>,
    /// Who sends it.
    pub source: Source,
    /// When it is to be read.
    pub delivery: Delivery,
}

/// A message was not taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The agent has ended, or is ending.
    #[error("the agent is gone")]
    Gone,
    /// Too many messages wait.
    #[error("the agent's inbox is full: {PENDING_LIMIT} messages wait")]
    Full,
    /// The message is not a user's.
    #[error("an agent takes messages of users; this one is the model's or a tool's")]
    NotUser,
    /// The message is too long.
    #[error("the message has {0} bytes; an agent takes {MESSAGE_LIMIT} at most")]
    TooLarge(usize),
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnOutcome {
    /// The turn; 0 if there was none, since the message was discarded or the agent went away first.
    pub turn: u32,
    /// Why it ended.
    pub reason: TurnReason,
    /// The last message of the model in it that has text.
    pub output: Option<Arc<Message>>,
    /// Tokens that it cost.
    pub usage: Usage,
}

/// A message that an agent has taken on.
#[derive(Debug)]
pub struct Receipt {
    pub(crate) id: MessageId,
    pub(crate) outcome: oneshot::Receiver<TurnOutcome>,
}

impl Input {
    /// A person's text, for a turn of its own.
    pub fn prompt(text: impl Into<Box<str>>) -> Self {
        Self { message: Arc::new(Message::user(text)), source: Source::Prompt, delivery: Delivery::Followup }
    }

    pub(crate) fn check(&self) -> Result<(), SendError> {
        if self.message.role != Role::User {
            return Err(SendError::NotUser);
        }
        let size = self.message.content.iter().map(size_of_part).sum();
        if size > MESSAGE_LIMIT { Err(SendError::TooLarge(size)) } else { Ok(()) }
    }
}

impl<T: Into<Box<str>>> From<T> for Input {
    fn from(text: T) -> Self {
        Self::prompt(text)
    }
}

impl TurnOutcome {
    /// A turn that went well.
    pub fn completed(turn: u32, output: Option<Arc<Message>>) -> Self {
        Self { turn, reason: TurnReason::Completed, output, usage: Usage::default() }
    }

    /// The end of a message that no turn has dealt with, or not to its end.
    pub(crate) fn never(cause: impl Into<Arc<str>>) -> Self {
        let reason = TurnReason::Aborted { cause: Some(cause.into()) };
        Self { turn: 0, reason, output: None, usage: Usage::default() }
    }
}

impl Receipt {
    /// The message's id in the agent's log.
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// Waits for the end of the turn that the message went into. One that is discarded, or whose agent goes away first,
    /// is aborted.
    pub async fn outcome(self) -> TurnOutcome {
        self.outcome.await.unwrap_or_else(|_| TurnOutcome::never("the agent ended"))
    }
}

fn size_of_part(part: &Content) -> usize {
    match part {
        Content::Text { text } | Content::Thinking { text, .. } => text.len(),
        Content::Image { data, .. } => data.len(),
        Content::ToolCall(call) => call.arguments.len(),
        Content::ToolResult { content, .. } => content.iter().map(size_of_part).sum(),
    }
}
