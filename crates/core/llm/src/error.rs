use std::time::Duration;

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LlmError {
    /// What kind of failure it is.
    pub kind: LlmErrorKind,
    /// One line for a person: what failed and, where the provider said so, why. Never holds a key.
    pub message: String,
    /// How long the provider asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// Kinds of failure, by what one can do about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LlmErrorKind {
    /// The key is missing, wrong, or may not use this model (401, 403).
    Unauthorized,
    /// The provider found fault with the request (other 4xx).
    InvalidRequest,
    /// Too many requests (429).
    RateLimited,
    /// The provider failed (5xx).
    ProviderFailed,
    /// No connection could be made.
    Unreachable,
    /// The stream ended before the reply did.
    Truncated,
    /// Nothing arrived for too long.
    TimedOut,
    /// What arrived made no sense.
    Protocol,
}

impl LlmError {
    /// An error of a kind, told in one line.
    pub fn new(kind: LlmErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// The error of a stream that ended without [`Chunk::End`](crate::Chunk::End).
    pub fn truncated() -> Self {
        Self::new(LlmErrorKind::Truncated, "the model's reply was cut off before its end")
    }

    /// Whether the same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        use LlmErrorKind::*;
        match self.kind {
            RateLimited | ProviderFailed | Unreachable => true,
            Unauthorized | InvalidRequest | Truncated | TimedOut | Protocol => false,
        }
    }
}
