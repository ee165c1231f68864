use std::sync::Arc;

use llm::{Route, Sampling, ToolSchema};
use serde::{Deserialize, Serialize};

use crate::Payload;

/// A turn begins: zero or more steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStart {
    /// Counted from 1 in this log.
    pub turn: u32,
}

impl Payload for TurnStart {
    const TAG: &'static str = "turn/start";
    const DECISIVE: bool = true;
}

/// A turn is closed: a fork may start here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnd {
    /// The turn.
    pub turn: u32,
    /// How it ended.
    pub reason: TurnReason,
}

impl Payload for TurnEnd {
    const TAG: &'static str = "turn/end";
    const DECISIVE: bool = true;
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TurnReason {
    /// The model was done.
    Completed,
    /// The token limit cut the model's reply.
    MaxTokens,
    /// It was cancelled.
    Aborted {
        /// Who or what cancelled it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Arc<str>>,
    },
    /// The prompt was rejected, or the model declined.
    Blocked {
        /// Why, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    /// Something failed.
    Error {
        /// What, in one line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    /// The process ended in the middle of it. Written only when a log is opened again.
    Interrupted,
}

/// A step begins: one model request and the tools it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStart {
    /// The turn.
    pub turn: u32,
    /// Counted from 1 in the turn.
    pub step: u32,
}

impl Payload for StepStart {
    const TAG: &'static str = "step/start";
}

/// A step is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// The turn.
    pub turn: u32,
    /// The step.
    pub step: u32,
}

impl Payload for StepEnd {
    const TAG: &'static str = "step/end";
}

/// Everything of a request that is not the conversation. Written when it changes, so every request can be rebuilt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestHeaderEvent {
    /// Why it was written.
    pub reason: HeaderReason,
    /// What requests look like from here on.
    pub header: Arc<RequestHeader>,
}

impl Payload for RequestHeaderEvent {
    const TAG: &'static str = "request/header";
}

/// Why a request header was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderReason {
    /// The first request of this session.
    Initial,
    /// Something in it is not as before.
    Changed,
}

/// The part of a model request that stays while the conversation grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestHeader {
    /// The adapter's name.
    pub provider: Arc<str>,
    /// The adapter's name for the model.
    pub model: Arc<str>,
    /// How the model should answer.
    pub sampling: Sampling,
    /// The system prompt.
    pub system: Arc<str>,
    /// The tools on offer.
    pub tools: Arc<[ToolSchema]>,
}

impl RequestHeader {
    /// Provider and model together.
    pub fn route(&self) -> Route {
        Route { provider: self.provider.clone(), model: self.model.clone() }
    }
}
