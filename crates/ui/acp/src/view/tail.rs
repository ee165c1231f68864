//! What a running call has shown so far: the end of it.

/// How much is kept, in bytes.
const MOST: usize = 8 * 1024;
/// What stands in front of a text whose beginning is gone.
const CUT: &str = "…";

#[derive(Default)]
pub(super) struct Tail {
    text: String,
    cut: bool,
    /// Whether it changed since it was last shown.
    pub(super) dirty: bool,
}

impl Tail {
    pub(super) fn push(&mut self, text: &str) {
        self.dirty = true;
        let text = match text.len() > MOST {
            true => {
                self.cut = true;
                &text[ceil(text, text.len() - MOST)..]
            }
            false => text,
        };
        self.text.push_str(text);
        if self.text.len() > MOST {
            self.cut = true;
            self.text.drain(..ceil(&self.text, self.text.len() - MOST));
        }
    }

    /// On a line of its own.
    pub(super) fn line(&mut self, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push("\n");
        }
        self.push(text);
        self.push("\n");
    }

    /// Everything that is kept; `None` where there is nothing.
    pub(super) fn shown(&self) -> Option<String> {
        let cut = if self.cut { CUT } else { "" };
        (!self.text.is_empty()).then(|| format!("{cut}{}", self.text))
    }
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_cut_is_told() {
        let mut tail = Tail::default();
        assert_eq!(tail.shown(), None);
        tail.push("a");
        tail.line("b");
        assert_eq!(tail.shown().as_deref(), Some("a\nb\n"));
        for _ in 0..10 {
            tail.push(&"é".repeat(MOST));
            let shown = tail.shown().expect("something is there");
            assert!(shown.starts_with('…') && shown.len() <= MOST + CUT.len());
        }
    }
}
