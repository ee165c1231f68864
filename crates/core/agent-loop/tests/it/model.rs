//! A model that says what it was told to say.

use std::collections::VecDeque;
use std::sync::Mutex;

use futures_util::stream;
use llm::*;

/// What a reply does next.
pub(crate) enum Say {
    Chunk(Chunk),
    Fail(LlmError),
    Do(Box<dyn FnOnce() + Send>),
    /// Never goes on.
    Hang,
    Panic,
}

/// Answers requests one after the other, and remembers them. Out of replies it says `done`.
#[derive(Default)]
pub(crate) struct Model {
    replies: Mutex<VecDeque<Vec<Say>>>,
    requests: Mutex<Vec<Request>>,
    panics_at_call: Mutex<usize>,
}

impl Model {
    pub(crate) fn reply_with(&self, replies: impl IntoIterator<Item = Vec<Say>>) {
        self.replies.lock().unwrap().extend(replies);
    }

    /// The next request finds it broken.
    pub(crate) fn panic_at_call(&self) {
        *self.panics_at_call.lock().unwrap() += 1;
    }

    /// Every request since the last call.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }
}

impl LlmAdapter for Model {
    fn reply(&self, request: Request) -> Reply {
        self.requests.lock().unwrap().push(request);
        let mut panics = self.panics_at_call.lock().unwrap();
        if *panics > 0 {
            *panics -= 1;
            drop(panics);
            panic!("a bug in the adapter");
        }
        let script = self.replies.lock().unwrap().pop_front().unwrap_or_else(|| says("done"));
        Box::pin(stream::unfold(script.into_iter(), async |mut script| {
            loop {
                match script.next()? {
                    Say::Chunk(chunk) => return Some((Ok(chunk), script)),
                    Say::Fail(error) => return Some((Err(error), script)),
                    Say::Do(act) => act(),
                    Say::Hang => std::future::pending().await,
                    Say::Panic => panic!("a bug in the stream"),
                }
            }
        }))
    }
}

pub(crate) fn chunk(chunk: Chunk) -> Say {
    Say::Chunk(chunk)
}

pub(crate) fn text(text: &str) -> Say {
    Say::Chunk(Chunk::Text(text.into()))
}

pub(crate) fn end(finish: Finish) -> Say {
    Say::Chunk(Chunk::End(finish))
}

pub(crate) fn act(act: impl FnOnce() + Send + 'static) -> Say {
    Say::Do(Box::new(act))
}

/// A call of a tool that is also its id.
pub(crate) fn call(tool: &str) -> Say {
    call_as(tool, tool)
}

pub(crate) fn call_as(id: &str, tool: &str) -> Say {
    Say::Chunk(Chunk::ToolCall(ToolCall { call_id: id.into(), name: tool.into(), arguments: "{}".into() }))
}

/// A text, and the end.
pub(crate) fn says(said: &str) -> Vec<Say> {
    vec![text(said), end(Finish::Stop)]
}

/// These calls, and the end.
pub(crate) fn calls(tools: &[&str]) -> Vec<Say> {
    tools.iter().map(|tool| call(tool)).chain([end(Finish::Stop)]).collect()
}

pub(crate) fn fails(kind: LlmErrorKind, message: &str) -> Say {
    Say::Fail(LlmError::new(kind, message))
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Say {
    Say::Chunk(Chunk::Usage(Usage { input_tokens, output_tokens, cached_input_tokens: 0 }))
}

/// A request's conversation, a line a message.
pub(crate) fn conversation(request: &Request) -> Vec<String> {
    request.messages.iter().map(|message| shown(message)).collect()
}

pub(crate) fn shown(message: &Message) -> String {
    let part = |part: &Content| match part {
        Content::Text { text } => text.to_string(),
        Content::Thinking { text, .. } => format!("({text})"),
        Content::ToolCall(call) => format!("[{}]", call.call_id),
        Content::ToolResult { call_id, content, is_error } => {
            let texts: String = content.iter().filter_map(Content::as_text).collect();
            format!("{call_id}{} {texts}", if *is_error { "!" } else { ":" })
        }
        Content::Image { .. } => "<image>".to_owned(),
    };
    let parts: Vec<String> = message.content.iter().map(part).collect();
    format!("{:?}: {}", message.role, parts.join(" "))
}
