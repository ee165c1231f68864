//! The places where behaviour is extended. New behaviour goes into a layer on one of these chains, not into the loop.

use std::sync::Arc;
use std::time::Duration;

use context::Chain;
use llm::{LlmError, Message, Reply, Request};
use session::{SessionId, UserMessage};

use crate::{AgentRef, TurnOutcome};

/// Before the messages of a step enter the conversation: a layer may rewrite or reject them.
pub struct BeforeStep;

/// What is about to enter the conversation.
pub struct StepInput {
    /// The agent.
    pub agent: AgentRef,
    /// The turn.
    pub turn: u32,
    /// The step, counted from 1.
    pub step: u32,
    /// The messages, in order; there may be none after the first step.
    pub messages: Vec<UserMessage>,
}

/// The input is not for the model. The turn ends as `blocked`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Rejected(pub Arc<str>);

impl Chain for BeforeStep {
    type Input = StepInput;
    type Output = Result<Vec<UserMessage>, Rejected>;
}

/// Around a model request: a layer may change what is asked, or answer itself.
pub struct ModelRequest;

/// What is about to be asked.
pub struct RequestInput {
    /// The agent.
    pub agent: AgentRef,
    /// The request, which shares its messages with the log.
    pub request: Request,
}

impl Chain for ModelRequest {
    type Input = RequestInput;
    type Output = Result<Reply, LlmError>;
}

/// When a request failed: a layer may have it tried again. Adapters retry what is transient by themselves.
pub struct OnRequestError;

/// A request that failed.
pub struct FailedRequest {
    /// The agent.
    pub agent: AgentRef,
    /// How often this step has been tried, 1 for the first time.
    pub attempt: u32,
    /// What went wrong.
    pub error: LlmError,
}

/// What to do about a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recourse {
    /// The turn ends with the error.
    Fail,
    /// The step is tried once more, after a pause.
    Retry(Duration),
}

impl Chain for OnRequestError {
    type Input = FailedRequest;
    type Output = Recourse;
}

/// When a turn would stop: a layer may have it go on.
pub struct OnTurnStop;

/// A turn that would stop.
pub struct StoppingTurn {
    /// The agent.
    pub agent: AgentRef,
    /// How it would end.
    pub outcome: TurnOutcome,
}

/// Whether a turn stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopVerdict {
    /// It does.
    Stop,
    /// It goes on with these notices to the model.
    Continue(Vec<Arc<Message>>),
}

impl Chain for OnTurnStop {
    type Input = StoppingTurn;
    type Output = StopVerdict;
}

/// Something that happens now and is never logged. Emitted in the agent's realm, for front doors.
#[derive(Clone, Debug)]
pub struct Live {
    /// The agent's session.
    pub session: SessionId,
    /// What happens.
    pub signal: Signal,
}

/// What may happen while a model speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// More text.
    Text(Box<str>),
    /// More of a thought.
    Thought(Box<str>),
}
