use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sandbox::{Denial, Enforcement, Grant, Mode};
use subprocess::Finished;
use tokio_util::sync::CancellationToken;

use crate::ShellError;

/// The longest command line, in bytes.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// The command line of one agent, as far as its session's sandbox mode lets it reach. Looked up in the agent's realm.
///
/// Every run asks for the mode anew, and begins in the same place: what a command line does to its own directory or
/// environment is over with it.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Where commands begin: the session's directory, absolute and canonical.
    fn root(&self) -> &Path;

    /// The mode in force now, without any grant. A provider that does not confine says [`Mode::DangerFullAccess`].
    fn mode(&self) -> Mode;

    /// Where a line would begin, canonical, if it can be run at all, whatever the mode. Nothing is run or asked for one
    /// that cannot.
    ///
    /// # Errors
    ///
    /// [`ShellError::Invalid`].
    fn check(&self, line: &Line) -> Result<PathBuf, ShellError>;

    /// Runs a line, and returns when nothing of what it started is left. `each` is given the output as it comes. A
    /// `grant` widens the mode for this run alone. Once `cancelled` fires, everything that runs is killed; so it is when
    /// the future is dropped, without being waited for.
    ///
    /// # Errors
    ///
    /// Where nothing of the line was run: whatever [`Shell::check`] says, a directory that the mode does not let it
    /// begin in, and a sandbox that cannot hold here or did not start.
    async fn run(
        &self,
        line: Line,
        grant: Option<&Grant>,
        cancelled: &CancellationToken,
        each: &mut (dyn for<'p> FnMut(&'p str) + Send),
    ) -> Result<Ran, ShellError>;
}

/// What is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// One line of a shell, or a whole script.
    pub command: String,
    /// The directory to begin in: absolute, or relative to the root. The root if there is none.
    pub cwd: Option<String>,
    /// After so long everything that runs is killed.
    pub timeout: Duration,
}

/// What came of a line that was run.
#[derive(Debug)]
pub struct Ran {
    /// How it ended, and what it said.
    pub finished: Finished,
    /// The mode that it ran under.
    pub mode: Mode,
    /// What the sandbox denied it, where it failed and that can be shown.
    pub denial: Option<Denial>,
    /// How much of the mode was held; `None` where there was nothing to hold.
    pub enforcement: Option<Enforcement>,
}

impl Line {
    /// A line that begins in the root.
    pub fn new(command: impl Into<String>, timeout: Duration) -> Self {
        Self { command: command.into(), cwd: None, timeout }
    }
}
