use futures_util::StreamExt as _;

use crate::{Chunk, Content, Finish, LlmError, Message, Reply, Role, Usage};

/// Puts a streamed reply together, chunk by chunk.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    content: Vec<Content>,
    text: String,
    thought: String,
    signature: Option<Box<str>>,
    usage: Option<Usage>,
    finish: Option<Finish>,
    size: usize,
}

/// A reply put together.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// What the model said. Its content may be empty.
    pub message: Message,
    /// What it cost, if the provider told.
    pub usage: Option<Usage>,
    /// How it ended; `None` if it was cut off.
    pub finish: Option<Finish>,
}

impl Assembly {
    /// An empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: Chunk) {
        self.size += match &chunk {
            Chunk::Text(text) | Chunk::Thought(text) | Chunk::ThoughtSignature(text) => text.len(),
            Chunk::ToolCall(call) => call.call_id.len() + call.name.len() + call.arguments.len(),
            Chunk::Usage(_) | Chunk::End(_) => 0,
        };
        match chunk {
            Chunk::Text(more) => {
                self.end_thought();
                self.text.push_str(&more);
            }
            Chunk::Thought(more) => {
                self.end_text();
                self.thought.push_str(&more);
            }
            Chunk::ThoughtSignature(signature) => self.signature = Some(signature),
            Chunk::ToolCall(call) => {
                self.end_part();
                self.content.push(Content::ToolCall(call));
            }
            Chunk::Usage(usage) => self.usage = Some(usage),
            Chunk::End(finish) => self.finish = Some(finish),
        }
    }

    /// How many bytes have arrived.
    pub fn size(&self) -> usize {
        self.size
    }

    /// What has arrived, whole or not.
    pub fn done(mut self) -> Assembled {
        self.end_part();
        let message = Message { role: Role::Assistant, content: self.content };
        Assembled { message, usage: self.usage, finish: self.finish }
    }

    /// Reads a reply to its end. A stream that was cut off is an error.
    pub async fn collect(mut reply: Reply) -> Result<Assembled, LlmError> {
        let mut assembly = Self::new();
        while let Some(chunk) = reply.next().await {
            assembly.push(chunk?);
        }
        let assembled = assembly.done();
        match assembled.finish {
            Some(_) => Ok(assembled),
            None => Err(LlmError::truncated()),
        }
    }

    fn end_part(&mut self) {
        self.end_thought();
        self.end_text();
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.content.push(Content::text(std::mem::take(&mut self.text)));
        }
    }

    fn end_thought(&mut self) {
        let signature = self.signature.take();
        if !self.thought.is_empty() || signature.is_some() {
            let text = std::mem::take(&mut self.thought).into();
            self.content.push(Content::Thinking { text, signature });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LlmErrorKind, ToolCall, replied};

    fn text(text: &str) -> Chunk {
        Chunk::Text(text.into())
    }

    #[tokio::test]
    async fn parts_keep_their_order_and_neighbours_join() {
        let call = ToolCall { call_id: "1".into(), name: "read".into(), arguments: "{}".into() };
        let chunks = [
            Chunk::Thought("hm".into()),
            Chunk::Thought("m".into()),
            Chunk::ThoughtSignature("seal".into()),
            text("a"),
            text("b"),
            Chunk::ToolCall(call.clone()),
            text("c"),
            Chunk::Usage(Usage { input_tokens: 1, ..Usage::default() }),
            Chunk::Usage(Usage { input_tokens: 2, ..Usage::default() }),
            Chunk::End(Finish::Stop),
        ];
        let got = Assembly::collect(replied(chunks)).await.unwrap();
        let thought = Content::Thinking { text: "hmm".into(), signature: Some("seal".into()) };
        let whole = vec![thought, Content::text("ab"), Content::ToolCall(call), Content::text("c")];
        assert_eq!(got.message.content, whole);
        assert_eq!(got.usage.unwrap().input_tokens, 2, "usage is cumulative: the last one counts");
    }

    #[tokio::test]
    async fn a_stream_without_an_end_is_an_error() {
        let cut = Assembly::collect(replied([text("half")])).await.unwrap_err();
        assert_eq!(cut.kind, LlmErrorKind::Truncated);
    }
}
