use std::borrow::Cow;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use llm::{Chunk, Finish, LlmError, Message, Reply, ToolCall, Usage};

/// The longest that one reply can be made to wait.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);

/// A reply, planned whole.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) delay: Duration,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) end: End,
}

/// How it ends.
#[derive(Debug)]
pub(crate) enum End {
    Finish(Usage, Finish),
    Error(LlmError),
    Hang,
    /// The stream ends and the reply does not.
    Cut,
}

impl Play {
    /// A reply of one text.
    pub(crate) fn say(text: &str, input_tokens: u64) -> Self {
        let chunks = pieces(text);
        let usage = Usage { input_tokens, output_tokens: output_tokens(&chunks), cached_input_tokens: 0 };
        Self { delay: Duration::ZERO, chunks, end: End::Finish(usage, Finish::Stop) }
    }

    /// A reply that fails at once.
    pub(crate) fn error(error: LlmError) -> Self {
        Self { delay: Duration::ZERO, chunks: Vec::new(), end: End::Error(error) }
    }
}

impl From<Play> for Reply {
    fn from(Play { delay, chunks, end }: Play) -> Self {
        let mut items: Vec<Result<Chunk, LlmError>> = chunks.into_iter().map(Ok).collect();
        let hangs = match end {
            End::Finish(usage, finish) => {
                items.extend([Ok(Chunk::Usage(usage)), Ok(Chunk::End(finish))]);
                false
            }
            End::Error(error) => {
                items.push(Err(error));
                false
            }
            End::Hang => true,
            End::Cut => false,
        };
        let items = stream::iter(items);
        match (delay.is_zero(), hangs) {
            (true, false) => Box::pin(items),
            (true, true) => Box::pin(items.chain(stream::pending())),
            (false, false) => Box::pin(after(delay).map(|()| items).flatten_stream()),
            (false, true) => Box::pin(after(delay).map(|()| items).flatten_stream().chain(stream::pending())),
        }
    }
}

/// The time runs from the first poll on.
async fn after(delay: Duration) {
    tokio::time::sleep(delay).await;
}

/// A text as at most eight chunks or so, cut between words.
pub(crate) fn pieces(text: &str) -> Vec<Chunk> {
    let target = (text.len() / 8).max(16);
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    for word in text.split_inclusive(char::is_whitespace) {
        at += word.len();
        if at - start >= target || at == text.len() {
            pieces.push(Chunk::Text(text[start..at].into()));
            start = at;
        }
    }
    pieces
}

/// The call at `index` of the reply to a request of `messages` messages. No other reply of a session has as many before
/// it.
pub(crate) fn call(messages: usize, index: usize, name: &str, arguments: &str) -> Chunk {
    let call_id = format!("script-{messages}-{index}").into();
    Chunk::ToolCall(ToolCall { call_id, name: name.into(), arguments: arguments.into() })
}

/// Here a token is a word, so that no number depends on how long a path or an id is on this machine.
pub(crate) fn words(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// The words of a message's texts, and of its tool traffic.
pub(crate) fn words_of(message: &Message) -> u64 {
    message.content.iter().map(words_in).sum()
}

fn words_in(content: &llm::Content) -> u64 {
    use llm::Content::*;
    match content {
        Text { text } | Thinking { text, .. } => words(text),
        ToolCall(call) => 1 + words(&call.arguments),
        ToolResult { content, .. } => content.iter().filter_map(llm::Content::as_text).map(words).sum(),
        Image { .. } => 1,
    }
}

/// The words of what a reply says, thinks and calls.
pub(crate) fn output_tokens(chunks: &[Chunk]) -> u64 {
    let count = |chunk: &Chunk| match chunk {
        Chunk::Text(text) | Chunk::Thought(text) => words(text),
        Chunk::ToolCall(call) => 1 + words(&call.arguments),
        Chunk::ThoughtSignature(_) | Chunk::Usage(_) | Chunk::End(_) => 0,
    };
    chunks.iter().map(count).sum()
}

/// At most `max` characters of a text, with an ellipsis if there are more.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_few_and_make_the_text() {
        for text in
            ["", "one", "a few words", &"a word ".repeat(5_000), &"x".repeat(5_000), "ünï  cödé\n\nand more of it"]
        {
            let pieces = pieces(text);
            let whole: String = pieces
                .iter()
                .map(|piece| match piece {
                    Chunk::Text(text) => &**text,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(whole, text);
            assert!(pieces.len() <= 9, "{}", pieces.len());
        }
        assert_eq!(pieces("a sentence of a few more words than fit into one piece").len(), 3);
    }
}
