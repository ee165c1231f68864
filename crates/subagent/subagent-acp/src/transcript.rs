//! What a child says: its last message, bounded.

use llm::Content;

/// The most that is kept of one message, in bytes. What a tool answers is cut far below that.
const LONGEST_MESSAGE: usize = 256 * 1024;

/// The messages of a child's turn.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    current: Message,
    last: Message,
}

#[derive(Debug, Default)]
struct Message {
    id: Option<String>,
    text: String,
    left_out: usize,
}

impl Messages {
    /// A piece of a message. One with another id begins another message.
    pub(crate) fn say(&mut self, text: &str, id: Option<&str>) {
        if id.is_some_and(|id| self.current.id.as_deref().is_some_and(|current| current != id)) {
            self.close();
        }
        if self.current.id.is_none() {
            self.current.id = id.map(str::to_owned);
        }
        let room = LONGEST_MESSAGE.saturating_sub(self.current.text.len());
        let fits = if self.current.left_out > 0 { 0 } else { text.floor_char_boundary(room) };
        self.current.text.push_str(&text[..fits]);
        self.current.left_out += text.len() - fits;
    }

    /// Something else than talk: what is said after it is another message, unless messages have ids.
    pub(crate) fn act(&mut self) {
        if self.current.id.is_none() {
            self.close();
        }
    }

    /// The last one that says something; empty if there was none.
    pub(crate) fn output(&mut self) -> Vec<Content> {
        self.close();
        let Message { text, left_out, .. } = &self.last;
        match (text.is_empty(), left_out) {
            (true, _) => Vec::new(),
            (false, 0) => vec![Content::text(text.as_str())],
            (false, left_out) => vec![Content::text(format!("{text}\n[… {left_out} bytes left out …]"))],
        }
    }

    fn close(&mut self) {
        let message = std::mem::take(&mut self.current);
        if !message.text.trim().is_empty() {
            self.last = message;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(messages: &mut Messages) -> String {
        messages.output().iter().filter_map(Content::as_text).collect()
    }

    // D-24
    #[test]
    fn the_last_message_that_says_something_counts() {
        let mut messages = Messages::default();
        assert_eq!(messages.output(), []);
        messages.say("I look", None);
        messages.act();
        messages.say("do", None);
        messages.say("ne", None);
        messages.act();
        messages.say(" \n", None);
        assert_eq!(text(&mut messages), "done");
    }

    // D-24
    #[test]
    fn ids_tell_messages_apart() {
        let mut messages = Messages::default();
        messages.say("one", Some("a"));
        messages.say("two ", Some("b"));
        messages.act();
        messages.say("and a half", Some("b"));
        assert_eq!(text(&mut messages), "two and a half");
    }

    #[test]
    fn a_flood_is_cut_on_a_character() {
        let mut messages = Messages::default();
        for _ in 0..100_000 {
            messages.say("xé😀", None);
        }
        let text = text(&mut messages);
        assert!(text.len() < LONGEST_MESSAGE + 64 && text.contains(" bytes left out"), "{}", text.len());
        let kept = text.split("\n[…").next().unwrap().len();
        assert!(text.contains(&format!("{} bytes", 700_000 - kept)), "{kept}");
    }
}
