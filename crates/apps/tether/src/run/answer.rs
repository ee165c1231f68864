//! Answering asks on the terminal: the exact operation is shown, and one call is allowed or rejected.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use async_trait::async_trait;
use context::Scope;
use sandbox::one_line;
use session::SessionId;
use tokio::sync::{Mutex, mpsc};
use user_approval::{Answer, Answerer, Approval, Question};

/// Answers for the agent of `session` while the app lives, if there is a person at a terminal.
pub(crate) fn answer_on_terminal(app: &Scope, session: SessionId) {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return;
    }
    if let Some(approval) = app.get::<Approval>() {
        // An app that is closing asks nothing more.
        let _ = app.own(approval.answer_with(Arc::new(Terminal { session, lines: Mutex::new(None) })));
    }
}

struct Terminal {
    session: SessionId,
    lines: Mutex<Option<mpsc::Receiver<String>>>,
}

#[async_trait]
impl Answerer for Terminal {
    fn owns(&self, session: SessionId) -> bool {
        self.session == session
    }

    async fn answer(&self, question: &Question) -> Option<Answer> {
        let mut lines = self.lines.lock().await;
        // Before anyone reads: a line on its way from the reader would look like an answer.
        forget_what_was_typed(lines.as_mut());
        let lines = lines.get_or_insert_with(read_lines);
        show(question).ok()?;
        let line = lines.recv().await?;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(Answer::AllowOnce),
            _ => Some(Answer::Reject),
        }
    }
}

fn show(question: &Question) -> io::Result<()> {
    let tool = &question.asked.tool;
    let operation = question.asked.reason.as_deref().unwrap_or(tool);
    let mut stderr = io::stderr().lock();
    if let Some(why) = &question.asked.justification {
        writeln!(stderr, "\nThe model says: \"{}\"", one_line(why))?;
    }
    // Last, and with nothing of the model's behind it.
    write!(stderr, "\n{} asks to {}\nAllow this once? [y/N] ", one_line(tool), one_line(operation))?;
    stderr.flush()
}

/// What was typed before a question was shown is not an answer to it.
fn forget_what_was_typed(lines: Option<&mut mpsc::Receiver<String>>) {
    // A terminal that cannot be flushed has nothing waiting.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    if let Some(lines) = lines {
        while lines.try_recv().is_ok() {}
    }
}

/// Reading a terminal cannot be cancelled, so it has a thread of its own that ends with the process.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
