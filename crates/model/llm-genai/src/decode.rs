use std::collections::VecDeque;
use std::sync::Arc;

use genai::chat::{ChatStreamEvent, ContentPart, StopReason, StreamEnd};
use llm::{Chunk, Finish, LlmError, LlmErrorKind, Request, Usage};
use serde_json::Value;

use crate::calls::Calls;
use crate::error::Teller;
use crate::frames::Frames;
use crate::provider::Provider;
use crate::request::{seal, seal_unreadable};

/// The most bytes that one reply may have.
const LIMIT: usize = 32 << 20;

/// Turns one reply, event by event, into chunks.
pub(crate) struct Decoder {
    provider: Provider,
    frames: Arc<Frames>,
    calls: Calls,
    signature: String,
    /// The last chunk was a seal, with nothing after it.
    sealed: bool,
    size: usize,
}

impl Decoder {
    pub(crate) fn new(provider: Provider, frames: Arc<Frames>) -> Self {
        let calls = Calls::new(provider);
        Self { provider, frames, calls, signature: String::new(), sealed: false, size: 0 }
    }

    /// Reads an event. A [`Chunk::End`] in `out` means that the reply is whole.
    pub(crate) fn read(
        &mut self,
        event: ChatStreamEvent,
        request: &Request,
        teller: &Teller<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), LlmError> {
        match event {
            ChatStreamEvent::Start | ChatStreamEvent::Heartbeat => {}
            ChatStreamEvent::Chunk(chunk) if chunk.content.is_empty() => {}
            ChatStreamEvent::Chunk(chunk) => {
                self.size += chunk.content.len();
                self.flush_signature(out);
                self.sealed = false;
                out.push_back(Chunk::Text(chunk.content.into()));
            }
            ChatStreamEvent::ReasoningChunk(chunk) if chunk.content.is_empty() => {}
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.size += chunk.content.len();
                self.flush_signature(out);
                self.part_from_sealed(out);
                out.push_back(Chunk::Thought(chunk.content.into()));
            }
            ChatStreamEvent::ThoughtSignatureChunk(chunk) => {
                self.size += chunk.content.len();
                if self.provider == Provider::Gemini {
                    self.flush_signature(out);
                }
                self.signature.push_str(&chunk.content);
            }
            ChatStreamEvent::ToolCallChunk(chunk) => {
                let call = chunk.tool_call;
                let arguments = match call.fn_arguments {
                    Value::String(text) => text,
                    Value::Null => String::new(),
                    other => other.to_string(),
                };
                if self.comes_whole() {
                    self.size += call.fn_name.len() + arguments.len();
                    self.flush_signature(out);
                    self.sealed = false;
                    let call = self.calls.finish(request, call.call_id, call.fn_name, arguments);
                    out.push_back(Chunk::ToolCall(call));
                } else {
                    self.size += self.calls.push(call.call_id, call.fn_name, arguments);
                }
            }
            ChatStreamEvent::End(end) => return self.end(end, request, teller, out),
        }
        if self.size > LIMIT {
            let message = format!("{}'s reply is longer than {} MiB", self.provider.name(), LIMIT >> 20);
            return Err(teller.error(LlmErrorKind::Protocol, &message));
        }
        Ok(())
    }

    /// What an error of the library means, in the light of what it did not read.
    pub(crate) fn fail(
        &self,
        error: &genai::Error,
        teller: &Teller<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), LlmError> {
        let told = teller.tell(error);
        let refused = matches!(error, genai::Error::ChatResponse { .. }) && self.frames.take().blocked;
        if !refused {
            return Err(told);
        }
        out.push_back(Chunk::End(Finish::Refusal));
        Ok(())
    }

    fn end(
        &mut self,
        end: StreamEnd,
        request: &Request,
        teller: &Teller<'_>,
        out: &mut VecDeque<Chunk>,
    ) -> Result<(), LlmError> {
        let seen = self.frames.take();
        if let Some(error) = seen.error {
            return Err(teller.reported(&error));
        }
        let mut finish = self.finish(&end, teller)?;
        if !seen.refusal.is_empty() {
            finish = Finish::Refusal;
            self.flush_signature(out);
            out.push_back(Chunk::Text(seen.refusal.into()));
        }
        self.flush_signature(out);
        for data in unreadable(&end) {
            self.part_from_sealed(out);
            out.push_back(Chunk::ThoughtSignature(seal_unreadable(data).into()));
            self.sealed = true;
        }
        if matches!(end.captured_stop_reason, Some(StopReason::ToolCall(_))) && self.calls.is_empty() {
            let message = format!("{} announced a tool call and sent none", self.provider.name());
            return Err(teller.error(LlmErrorKind::Protocol, &message));
        }
        for call in self.calls.take(request, finish == Finish::MaxTokens) {
            if call.name.is_empty() {
                let message = format!("{} sent a tool call without a name", self.provider.name());
                return Err(teller.error(LlmErrorKind::Protocol, &message));
            }
            out.push_back(Chunk::ToolCall(call));
        }
        if let Some(usage) = &end.captured_usage {
            out.push_back(Chunk::Usage(usage_of(usage)));
        }
        out.push_back(Chunk::End(finish));
        Ok(())
    }

    /// Why the reply ended, if the provider said so. The library makes an end of its own up where a stream just stops.
    fn finish(&self, end: &StreamEnd, teller: &Teller<'_>) -> Result<Finish, LlmError> {
        let reason = match &end.captured_stop_reason {
            Some(StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_)) => {
                return Ok(Finish::Stop);
            }
            Some(StopReason::MaxTokens(_)) => return Ok(Finish::MaxTokens),
            Some(StopReason::ContentFilter(_)) => return Ok(Finish::Refusal),
            // Old versions give no reason; only their last line has usage.
            None if self.provider == Provider::Ollama && end.captured_usage.is_some() => return Ok(Finish::Stop),
            None => return Err(LlmError::truncated()),
            Some(StopReason::Other(reason)) => reason,
        };
        let failed = match self.provider {
            // A call that the model did not get right, and the like: the same request may fare better.
            Provider::Gemini => true,
            Provider::DeepSeek | Provider::OpenAi => ["insufficient_system_resource", "error"].contains(&&**reason),
            Provider::Anthropic | Provider::Ollama => false,
        };
        if failed {
            let message = format!("{} stopped in the middle: {reason}", self.provider.name());
            return Err(teller.error(LlmErrorKind::ProviderFailed, &message));
        }
        Ok(Finish::Stop)
    }

    fn comes_whole(&self) -> bool {
        matches!(self.provider, Provider::Gemini | Provider::Ollama)
    }

    fn flush_signature(&mut self, out: &mut VecDeque<Chunk>) {
        if self.signature.is_empty() {
            return;
        }
        self.part_from_sealed(out);
        out.push_back(Chunk::ThoughtSignature(seal(self.provider, &self.signature).into()));
        self.signature.clear();
        self.sealed = true;
    }

    /// Two sealed thoughts that follow each other must not become one.
    fn part_from_sealed(&mut self, out: &mut VecDeque<Chunk>) {
        if self.sealed {
            out.push_back(Chunk::Text("".into()));
            self.sealed = false;
        }
    }
}

/// Thoughts that only the provider can read, which it wants back.
fn unreadable(end: &StreamEnd) -> impl Iterator<Item = &str> {
    let parts = end.captured_content.iter().flat_map(|content| content.parts());
    parts.filter_map(|part| match part {
        ContentPart::Custom(part) if part.typ() == Some("redacted_thinking") => part.data.get("data")?.as_str(),
        _ => None,
    })
}

fn usage_of(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
    let reasoning = usage.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens.or(reasoning)),
        cached_input_tokens: count(usage.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens)),
    }
}
