use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use pvec::PVec;
use serde::{Deserialize, Serialize};

use crate::{LlmError, Message, ToolCall};

/// One model API. Registered by name with `ctx.register::<dyn LlmAdapter>(name, adapter)`.
pub trait LlmAdapter: Send + Sync {
    /// Starts a request; nothing happens until the stream is polled, and dropping it cancels and closes the connection.
    ///
    /// The stream yields any number of chunks and then exactly one [`Chunk::End`] or one error, and then ends. A stream
    /// that ends without either was cut off, and its consumer must treat it as an error.
    fn reply(&self, request: Request) -> Reply;

    /// Whether this model can be given pictures.
    fn takes_images(&self, model: &str) -> bool {
        let _ = model;
        false
    }
}

/// A reply as it arrives.
pub type Reply = Pin<Box<dyn Stream<Item = Result<Chunk, LlmError>> + Send>>;

/// Everything a model is given. Cloning it shares everything: building one does not look at the history.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model, by the adapter's name for it.
    pub model: Arc<str>,
    /// The system prompt; may be empty.
    pub system: Arc<str>,
    /// The conversation. Results of one response's tool calls follow each other as messages of their own.
    pub messages: PVec<Arc<Message>>,
    /// The tools it may ask for.
    pub tools: Arc<[ToolSchema]>,
    /// How it should answer.
    pub sampling: Sampling,
}

/// A tool as a model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// What the model calls it.
    pub name: Arc<str>,
    /// What it does and when to use it.
    pub description: Arc<str>,
    /// JSON Schema of its arguments: an object.
    pub input_schema: Arc<serde_json::Value>,
}

/// How a model should answer. What is absent is the provider's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// The most tokens that one reply may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// From 0 (the likeliest words) up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
}

/// A piece of a streamed reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// More text.
    Text(Box<str>),
    /// More of a thought.
    Thought(Box<str>),
    /// The provider's seal on the thought so far.
    ThoughtSignature(Box<str>),
    /// A whole tool call. Adapters keep the fragments to themselves.
    ToolCall(ToolCall),
    /// Tokens so far; the last one counts.
    Usage(Usage),
    /// The reply is whole. Always the last chunk.
    End(Finish),
}

/// Why a whole reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, or waits for the tools it asked for.
    Stop,
    /// The token limit cut it.
    MaxTokens,
    /// The model, or a filter of its provider, declined.
    Refusal,
}

/// Tokens that a request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens read, those from a cache included.
    pub input_tokens: u64,
    /// Tokens written, thoughts included.
    pub output_tokens: u64,
    /// Of the tokens read, how many came from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
}

impl Request {
    /// An empty request to a model.
    pub fn to(model: impl Into<Arc<str>>) -> Self {
        Self {
            model: model.into(),
            system: "".into(),
            messages: PVec::default(),
            tools: Arc::default(),
            sampling: Sampling::default(),
        }
    }
}

impl Usage {
    /// Tokens read and written together.
    pub fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cached_input_tokens = self.cached_input_tokens.saturating_add(more.cached_input_tokens);
    }
}

/// A reply whose chunks are known already.
pub fn replied(chunks: impl IntoIterator<Item = Chunk, IntoIter: Send + 'static>) -> Reply {
    Box::pin(stream::iter(chunks.into_iter().map(Ok)))
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
