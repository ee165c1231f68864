//! What the harness believes of what a helper says.

use std::io;
use std::process::ExitStatus;

use tokio::net::unix::pipe;

use crate::ended::{Ended, How, Report};
use crate::helper::MAX_REPORT;
use crate::piped::PIPE;
use crate::process::{in_words, is_ours};

/// The most notes that are kept.
const NOTES: usize = 64;

const BUFFER: usize = 4096;

/// What a helper has said.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    line: Vec<u8>,
    how: Option<How>,
    notes: Vec<String>,
    left: Vec<u32>,
    broken: Option<String>,
}

impl Reports {
    /// Reads to the end, or to the first thing that no helper says. What a helper says after that is not wanted, and the pipe
    /// is closed so that none waits for it to be read.
    pub(crate) async fn read(&mut self, from: &mut Option<pipe::Receiver>) -> Trusted {
        while let Some(pipe) = from.as_ref().filter(|_| self.broken.is_none()) {
            if pipe.readable().await.is_err() || self.take(pipe) == Taken::End {
                return Trusted::Yes;
            }
        }
        *from = None;
        Trusted::No
    }

    /// Reads what is there of a helper that has ended; whoever still holds the other end is not waited for.
    pub(crate) fn read_rest(&mut self, pipe: &pipe::Receiver) {
        // As much as a helper can have left in a pipe.
        for _ in 0..PIPE / BUFFER {
            if self.take(pipe) != Taken::Some {
                return;
            }
        }
    }

    fn take(&mut self, pipe: &pipe::Receiver) -> Taken {
        let mut buffer = [0; BUFFER];
        match pipe.try_read(&mut buffer) {
            Ok(0) => Taken::End,
            Ok(read) => {
                self.push(&buffer[..read]);
                Taken::Some
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Taken::Nothing,
            Err(_) => Taken::End,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.broken.is_some() {
                return;
            }
            if *byte != b'\n' {
                self.line.push(*byte);
            }
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                match serde_json::from_slice(&line) {
                    Ok(report) => self.hear(report),
                    Err(_) => self.broken = Some(excerpt(&line)),
                }
            } else if self.line.len() >= MAX_REPORT {
                self.broken = Some(excerpt(&self.line));
            }
        }
    }

    fn hear(&mut self, report: Report) {
        let how = match report {
            Report::Started => return,
            Report::Note { text } => {
                if self.notes.len() < NOTES {
                    self.notes.push(text);
                }
                return;
            }
            Report::Left { processes } => {
                self.left = processes;
                return;
            }
            Report::Failed { stage, why } => How::SetUpFailed { stage, why },
            Report::NotFound { program, why } => How::NotFound { program, why },
            Report::Ended(exit) => How::from(exit),
        };
        // The first one is what happened; a second one is what a process of the tree would like us to believe.
        self.how.get_or_insert(how);
    }

    /// A complaint about processes that are still there, which is a note too.
    pub(crate) fn left(&mut self) -> Option<String> {
        let pids: Vec<_> = self.left.iter().take(NOTES).map(u32::to_string).collect();
        let count = self.left.len();
        let left =
            (count > 0).then(|| format!("{count} processes of a command could not be ended: {}", pids.join(", ")))?;
        self.notes.push(left.clone());
        Some(left)
    }

    pub(crate) fn into_ended(self, killed: bool, status: io::Result<ExitStatus>) -> Ended {
        let how = match (self.broken, self.how) {
            (Some(line), _) => How::HelperDied { status: format!("ended for a report that is none: {line}") },
            (None, Some(How::Signaled(signal))) if killed && is_ours(crate::Exit::Signal(signal)) => How::Killed,
            (None, Some(how)) => how,
            (None, None) if killed => How::Killed,
            (None, None) => {
                How::HelperDied { status: format!("{}, without a word about the command", in_words(status)) }
            }
        };
        Ended { how, notes: self.notes }
    }
}

/// Whether everything that was read is what a helper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trusted {
    Yes,
    No,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Some,
    Nothing,
    End,
}

fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    format!("`{}`", text[..text.floor_char_boundary(200)].escape_debug())
}
