//! The lines of a terminal that move: one an agent, saying what it does at this moment.

use std::collections::HashMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use sandbox::one_line;
use session::SessionId;

/// How much of what a model is saying is shown, in characters.
const TAIL: usize = 80;

pub(crate) struct Moving {
    all: MultiProgress,
    lines: HashMap<SessionId, Line>,
    /// What is to be said once the questions on the terminal are answered.
    held: Vec<String>,
    questions: u32,
}

struct Line {
    bar: ProgressBar,
    label: String,
    /// The last of what the model says.
    said: String,
}

impl Moving {
    pub(crate) fn new() -> Self {
        Self { all: MultiProgress::new(), lines: HashMap::new(), held: Vec::new(), questions: 0 }
    }

    /// Prints a line above those that move.
    pub(crate) fn say(&mut self, line: &str) {
        if self.questions > 0 {
            self.held.push(line.to_owned());
        } else {
            // A terminal that is gone is nobody to show it to.
            let _ = self.all.println(line);
        }
    }

    /// What an agent does now.
    pub(crate) fn doing(&mut self, session: SessionId, indent: &str, label: &str, doing: &str) {
        let line = self.lines.entry(session).or_insert_with(|| {
            let style = ProgressStyle::with_template("{prefix}{spinner} {wide_msg}").expect("a valid template");
            let bar = self.all.add(ProgressBar::new_spinner().with_style(style));
            bar.set_prefix(indent.to_owned());
            bar.enable_steady_tick(Duration::from_millis(100));
            Line { bar, label: label.to_owned(), said: String::new() }
        });
        line.said.clear();
        line.show(doing);
    }

    /// More of what an agent's model is saying.
    pub(crate) fn saying(&mut self, session: SessionId, more: &str) {
        let Some(line) = self.lines.get_mut(&session) else { return };
        line.said.push_str(more);
        let cut = line.said.char_indices().rev().nth(TAIL).map_or(0, |(at, _)| at);
        line.said.drain(..cut);
        let said = one_line(&line.said).to_string();
        line.show(&said);
    }

    /// An agent is done.
    pub(crate) fn done(&mut self, session: SessionId) {
        if let Some(line) = self.lines.remove(&session) {
            line.bar.finish_and_clear();
        }
    }

    /// A question is about to be asked: nothing moves over it until it is answered.
    pub(crate) fn hold(&mut self) {
        self.questions += 1;
        // As above.
        let _ = self.all.clear();
        self.all.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// A question is answered.
    pub(crate) fn go_on(&mut self) {
        self.questions = self.questions.saturating_sub(1);
        if self.questions == 0 {
            self.all.set_draw_target(ProgressDrawTarget::stderr());
            for line in std::mem::take(&mut self.held) {
                self.say(&line);
            }
        }
    }

    /// Everything is done.
    pub(crate) fn finish(&mut self) {
        self.lines.drain().for_each(|(_, line)| line.bar.finish_and_clear());
    }
}

impl Line {
    fn show(&self, what: &str) {
        self.bar.set_message(match self.label.is_empty() {
            true => what.to_owned(),
            false => format!("{}: {what}", self.label),
        });
    }
}
