//! What a provider's tests bring.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Launch, SandboxProvider};

/// A provider, and how an app starts what it says.
pub trait Fixture: Send + Sync + 'static {
    /// The provider.
    fn provider(&self) -> Arc<dyn SandboxProvider>;

    /// The same kind of provider where it has no means, such as one without its helper. `None` if there can be no such one.
    fn powerless(&self) -> Option<Arc<dyn SandboxProvider>>;

    /// A directory in which workspaces are made: that commands get to, and in whose place no provider puts another, as it may
    /// with `/tmp`.
    fn place(&self) -> PathBuf;

    /// An executable, in the reach of commands, that begins its `main` with [`run_if_asked`](super::run_if_asked).
    fn probe(&self) -> PathBuf;

    /// Starts what the provider said, in this directory and with this environment and no other. It has nothing to read; what
    /// it writes to its output and to its errors is kept, in order.
    fn start(&self, launch: Launch, cwd: &Path, env: &[(OsString, OsString)]) -> Box<dyn Running>;
}

/// A command that runs.
pub trait Running {
    /// Asks for the end of everything that it started, and does not wait for it.
    fn stop(&mut self);

    /// Waits for its end, and for that of everything that it started.
    fn end(self: Box<Self>) -> Ended;
}

/// How a command ended, and what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// What it wrote. Bytes that are no text are replaced.
    pub output: String,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// With this code.
    Exited(i32),
    /// By this signal, which nobody outside has sent.
    Signaled(i32),
    /// It was stopped.
    Stopped,
    /// Everything was set up, and the program could not be executed.
    NotExecuted,
    /// It could not be set up, for this reason. Nothing of the command ran.
    NotSetUp(String),
    /// What held it ended and did not say how the command had.
    Lost(String),
}
