use std::sync::{Mutex, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;

use crate::provider::Provider;

/// Notes what the library reads over in a provider's stream.
pub(crate) struct Frames {
    provider: Provider,
    seen: Mutex<Seen>,
}

/// What was read over so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// OpenAI: the model's words of refusal, which come beside its text.
    pub(crate) refusal: String,
    /// Gemini: the prompt was not even read.
    pub(crate) blocked: bool,
    /// Ollama: a line with an error.
    pub(crate) error: Option<Value>,
}

impl Frames {
    pub(crate) fn new(provider: Provider) -> Self {
        Self { provider, seen: Mutex::default() }
    }

    pub(crate) fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self, data: &str) -> Option<()> {
        // Nearly every frame is passed over without being parsed.
        let word = match self.provider {
            Provider::OpenAi | Provider::DeepSeek => "\"refusal\"",
            Provider::Gemini => "\"blockReason\"",
            Provider::Ollama => "\"error\"",
            Provider::Anthropic => return None,
        };
        let frame: Value = data.contains(word).then(|| serde_json::from_str(data).ok())??;
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match self.provider {
            Provider::OpenAi | Provider::DeepSeek => {
                seen.refusal.push_str(frame.pointer("/choices/0/delta/refusal")?.as_str()?);
            }
            Provider::Gemini => seen.blocked |= frame.pointer("/promptFeedback/blockReason")?.is_string(),
            Provider::Ollama => seen.error = Some(frame.get("error")?.clone()),
            Provider::Anthropic => {}
        }
        Some(())
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        self.read(frame.data);
    }
}
