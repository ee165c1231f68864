//! What is kept of an output: its head, its tail, and all of it in a file.

use std::path::PathBuf;

use context::Ctx;

use crate::run::Limits;
use crate::spill::{Spill, Spilled};

/// The output of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The beginning and the end, with one line between them that says how much is left out and where all of it is. What
    /// is not UTF-8 is replaced.
    pub text: String,
    /// How much there was.
    pub bytes: u64,
    /// The file that holds all of it, or as much as it may.
    pub spilled: Option<PathBuf>,
}

/// Bounded, whatever is pushed.
pub(crate) struct Keep {
    head_limit: usize,
    tail_limit: usize,
    head: String,
    /// Longer than its limit by at most as much again.
    tail: String,
    left_out: u64,
    bytes: u64,
    partial: Vec<u8>,
    spill: Option<Spill>,
}

impl Keep {
    pub(crate) fn new(limits: &Limits, ctx: &Ctx) -> Self {
        Self {
            head_limit: limits.head,
            tail_limit: limits.tail,
            head: String::new(),
            tail: String::new(),
            left_out: 0,
            bytes: 0,
            partial: Vec::new(),
            spill: limits.spill.clone().map(|to| Spill::new(ctx.clone(), to)),
        }
    }

    /// Takes a piece and returns its text, without a character that is not whole yet.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> String {
        self.bytes += bytes.len() as u64;
        self.partial.extend_from_slice(bytes);
        let text = decode(&mut self.partial);
        self.push_text(&text);
        let over = self.left_out > 0 || self.tail.len() > self.tail_limit;
        if let Some(spill) = &mut self.spill {
            spill.push(bytes, over).await;
        }
        text
    }

    /// The text of an unfinished character at the very end.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.partial);
        let text = (!rest.is_empty()).then(|| String::from_utf8_lossy(&rest).into_owned())?;
        self.push_text(&text);
        Some(text)
    }

    pub(crate) async fn finish(mut self) -> Captured {
        self.trim(self.tail_limit);
        let Self { head, tail, left_out, bytes, spill, .. } = self;
        if left_out == 0 {
            return Captured { text: head + &tail, bytes, spilled: None };
        }
        let (whereabouts, spilled) = match spill {
            None => (String::new(), None),
            Some(spill) => match spill.finish().await {
                Spilled::All(path) => (format!("; all of it is in {}", path.display()), Some(path)),
                Spilled::Beginning(path, most) => {
                    (format!("; the first {most} bytes are in {}", path.display()), Some(path))
                }
                Spilled::Failed(why) => (format!("; they could not be written to a file: {why}"), None),
            },
        };
        let line_break = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        let text = format!("{head}{line_break}[… {left_out} bytes left out{whereabouts} …]\n{tail}");
        Captured { text, bytes, spilled }
    }

    fn push_text(&mut self, text: &str) {
        let mut text = text;
        if self.tail.is_empty() && self.left_out == 0 {
            let room = text.floor_char_boundary(self.head_limit - self.head.len());
            self.head.push_str(&text[..room]);
            text = &text[room..];
        }
        self.tail.push_str(text);
        // Seldom enough that moving what is kept costs no more than having read it.
        if self.tail.len() > 2 * self.tail_limit {
            self.trim(self.tail_limit);
        }
    }

    fn trim(&mut self, limit: usize) {
        if self.tail.len() > limit {
            let from = self.tail.ceil_char_boundary(self.tail.len() - limit);
            self.left_out += from as u64;
            self.tail.drain(..from);
        }
    }
}

/// Takes the text off the front of `bytes` and leaves the beginning of a character there.
fn decode(bytes: &mut Vec<u8>) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    loop {
        match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                rest = &[];
                break;
            }
            Err(error) => {
                let (valid, after) = rest.split_at(error.valid_up_to());
                text.push_str(std::str::from_utf8(valid).expect("it was found to be"));
                rest = after;
                let Some(wrong) = error.error_len() else { break };
                text.push(char::REPLACEMENT_CHARACTER);
                rest = &rest[wrong..];
            }
        }
    }
    let keep = rest.len();
    bytes.drain(..bytes.len() - keep);
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use context::Scope;

    use super::*;

    /// However it comes in pieces, it is the same text within the same bounds.
    async fn check(output: &[u8], head: usize, tail: usize) {
        let (scope, whole) = (Scope::root("test"), String::from_utf8_lossy(output).into_owned());
        let limits = Limits { timeout: Duration::ZERO, head, tail, spill: None };
        for size in [1, 2, 3, 5, 7, 64, output.len().max(1)] {
            let (mut keep, mut seen) = (Keep::new(&limits, &scope), String::new());
            for piece in output.chunks(size) {
                seen += &keep.push(piece).await;
                assert!(keep.tail.len() <= 2 * tail + piece.len() * 3);
            }
            seen += &keep.rest().unwrap_or_default();
            assert_eq!(seen, whole);
            let captured = keep.finish().await;
            assert_eq!(captured.bytes, output.len() as u64);
            if whole.len() <= head + tail - 3 {
                assert_eq!(captured.text, whole);
                continue;
            }
            let (start, rest) = captured.text.split_once("[… ").unwrap();
            let (left_out, end) = rest.split_once(" bytes left out …]\n").unwrap();
            let is_broken = start.len() > head || !whole.starts_with(start);
            let start = if is_broken { start.strip_suffix('\n').unwrap() } else { start };
            assert!(whole.starts_with(start) && whole.ends_with(end), "{captured:?}");
            assert!(start.len() <= head && end.len() <= tail && start.len() + end.len() + 6 > head + tail);
            assert_eq!(start.len() + end.len() + left_out.parse::<usize>().unwrap(), whole.len());
        }
    }

    #[tokio::test]
    async fn pieces_make_no_difference() {
        for (head, tail) in [(10, 20), (8, 3), (100, 100), (3, 1000)] {
            check(b"", head, tail).await;
            check("short".as_bytes(), head, tail).await;
            check("aä€😀".repeat(50).as_bytes(), head, tail).await;
            check(&b"a\xff\xe2\x82b\xf0\x9f".repeat(40), head, tail).await;
            check(&[0x80; 300], head, tail).await;
            check("line\n".repeat(100).as_bytes(), head, tail).await;
        }
    }
}
