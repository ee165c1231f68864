//! What is kept of a job's output: its head, its tail, and how much is gone between them.

use std::collections::VecDeque;

/// How many bytes are kept of the beginning.
pub const HEAD_LIMIT: usize = 8 * 1024;

/// How many bytes are kept of the end.
pub const TAIL_LIMIT: usize = 24 * 1024;

/// Bounded, whatever is pushed.
#[derive(Default)]
pub(crate) struct Output {
    head: String,
    /// Pieces of which none is longer than [`TAIL_LIMIT`].
    tail: VecDeque<Box<str>>,
    tail_len: usize,
    dropped: u64,
}

impl Output {
    pub(crate) fn push(&mut self, text: &str) {
        let mut text = text;
        if self.tail.is_empty() && self.dropped == 0 {
            let room = text.floor_char_boundary(HEAD_LIMIT - self.head.len());
            self.head.push_str(&text[..room]);
            text = &text[room..];
        }
        if text.len() > TAIL_LIMIT {
            let from = text.ceil_char_boundary(text.len() - TAIL_LIMIT);
            self.dropped += from as u64;
            text = &text[from..];
        }
        if text.is_empty() {
            return;
        }
        self.tail_len += text.len();
        match self.tail.back_mut().filter(|last| last.len() + text.len() <= PIECE) {
            Some(last) => *last = [&**last, text].concat().into(),
            None => self.tail.push_back(text.into()),
        }
        while self.tail_len > TAIL_LIMIT {
            self.drop_oldest(self.tail_len - TAIL_LIMIT);
        }
    }

    /// Drops as much as is too much of the oldest piece.
    fn drop_oldest(&mut self, too_much: usize) {
        let Some(oldest) = self.tail.pop_front() else { return };
        let gone = oldest.ceil_char_boundary(too_much.min(oldest.len()));
        self.dropped += gone as u64;
        self.tail_len -= gone;
        if gone < oldest.len() {
            self.tail.push_front(oldest[gone..].into());
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = self.head.clone();
        if self.dropped > 0 {
            text.push_str(&format!("\n[… {} bytes left out …]\n", self.dropped));
        }
        text.extend(self.tail.iter().map(|piece| &**piece));
        text
    }
}

/// Shorter pieces are put together, so that many small ones do not cost more than their text.
const PIECE: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str]) {
        let (mut output, whole) = (Output::default(), pieces.concat());
        pieces.iter().for_each(|piece| output.push(piece));
        let text = output.to_text();
        assert!(output.head.len() <= HEAD_LIMIT && output.tail_len <= TAIL_LIMIT);
        assert_eq!(output.tail.iter().map(|piece| piece.len()).sum::<usize>(), output.tail_len);
        assert!(output.tail.len() <= 2 * TAIL_LIMIT / PIECE + 2, "{} pieces", output.tail.len());
        if whole.len() <= HEAD_LIMIT + TAIL_LIMIT - 4 {
            assert_eq!(text, whole);
            return;
        }
        let (head, rest) = text.split_once("\n[… ").unwrap();
        let (gone, tail) = rest.split_once(" bytes left out …]\n").unwrap();
        assert!(whole.starts_with(head) && whole.ends_with(tail));
        assert_eq!(head.len() + tail.len() + gone.parse::<usize>().unwrap(), whole.len());
        assert!(head.len() > HEAD_LIMIT - 4 && tail.len() > TAIL_LIMIT - 4);
    }

    #[test]
    fn head_and_tail_are_kept_and_the_rest_is_counted() {
        check(&[]);
        check(&["one ", "two ", "three"]);
        check(&["x"; 2 * HEAD_LIMIT]);
        check(&["abc\n"; 40_000]);
        check(&["äöü€"; 40_000]);
        check(&[&"ä€".repeat(100_000)]);
        check(&["a", &"€".repeat(HEAD_LIMIT), "b", &"ü".repeat(TAIL_LIMIT), "c"]);
        check(&[&"x".repeat(HEAD_LIMIT), &"y".repeat(TAIL_LIMIT), "z"]);
        check(&["", &"z".repeat(700), ""].repeat(200));
    }
}
