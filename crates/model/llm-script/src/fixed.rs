use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use llm::{Chunk, Finish, LlmAdapter, LlmError, Reply, Request};

/// Answers every request with the same chunks, at the cost of one box and of their clones: for benches.
///
/// ```
/// # use llm::*; use llm_script::Fixed;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), LlmError> {
/// let reply = Fixed::letters("child done").reply(Request::to("any"));
/// assert_eq!(Assembly::collect(reply).await?.message.text(), "child done");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Fixed {
    chunks: Arc<[Chunk]>,
    then: Then,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    End,
    Hang,
}

struct Chunks {
    fixed: Fixed,
    next: usize,
}

impl Fixed {
    /// These chunks, and the stream's end. Without a [`Chunk::End`] among them the reply is cut off.
    pub fn new(chunks: impl Into<Arc<[Chunk]>>) -> Self {
        Self { chunks: chunks.into(), then: Then::End }
    }

    /// These chunks, and then nothing for ever.
    pub fn hanging(chunks: impl Into<Arc<[Chunk]>>) -> Self {
        Self { chunks: chunks.into(), then: Then::Hang }
    }

    /// A text, one chunk a character, that ends well.
    pub fn letters(text: &str) -> Self {
        let letters = text.chars().map(|letter| Chunk::Text(letter.to_string().into()));
        Self::new(letters.chain([Chunk::End(Finish::Stop)]).collect::<Vec<_>>())
    }
}

impl LlmAdapter for Fixed {
    fn reply(&self, _: Request) -> Reply {
        Box::pin(Chunks { fixed: self.clone(), next: 0 })
    }
}

impl Stream for Chunks {
    type Item = Result<Chunk, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = self.fixed.chunks.get(self.next).cloned();
        self.next += usize::from(chunk.is_some());
        match (chunk, self.fixed.then) {
            (Some(chunk), _) => Poll::Ready(Some(Ok(chunk))),
            (None, Then::End) => Poll::Ready(None),
            (None, Then::Hang) => Poll::Pending,
        }
    }
}
