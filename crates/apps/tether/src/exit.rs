//! Exit statuses, and failures that carry one.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use sandbox::one_line;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The last top-level turn completed, or the answer is printed.
    Done,
    /// The task failed, was refused, or hit the token limit.
    Failed,
    /// Usage or configuration.
    Usage,
    /// Stopped by a limit.
    Limit,
    /// Interrupted.
    Interrupted,
}

/// Why a command could not do its work, and what that makes of its status.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    error: anyhow::Error,
}

impl Failure {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into() }
    }

    /// Something failed.
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Failed, error: error.into() }
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    /// One line, whatever the error's parts say.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = String::new();
        for cause in self.error.chain() {
            let cause = cause.to_string();
            // Many errors name their source in their own text.
            if !told.ends_with(&cause) {
                if !told.is_empty() {
                    told.push_str(": ");
                }
                told.push_str(&cause);
            }
        }
        write!(f, "{}", one_line(&told.trim_end().replace('\n', " ")))
    }
}

/// Tells a person something, in one line. Where nobody listens any more it is not worth a failure.
pub(crate) fn tell(line: impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "tether: {line}");
}

impl Exit {
    /// The status of the process.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Limit => 3,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
