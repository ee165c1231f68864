use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use sandbox::{CannotConfine, Mode, NoException};
use session::{Closed, FlushError};
use subagent::StartError;
use subprocess::SpawnError;

use crate::LONGEST_GRACES;

/// Settings with which no child could be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// There is nothing to run.
    #[error("there is no command: it takes a program's name or absolute path, then its arguments")]
    NoCommand,
    /// A command that a working directory would decide.
    #[error(
        "the command {} depends on the directory that it is run in: it takes a name along PATH, or an absolute path",
        .0.display()
    )]
    RelativeCommand(PathBuf),
    /// A path that a working directory would decide.
    #[error("`{key}`: {} is not absolute", path.display())]
    RelativePath {
        /// Which setting it is in.
        key: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// Longer than whoever waits for the child does.
    #[error("the graces are more than {} s together", LONGEST_GRACES.as_secs())]
    Graces,
}

/// Why a child in another process is not started. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The parent ends.
    #[error("the parent is closing")]
    Closing,
    /// An option that is the child's own affair.
    #[error("{0} cannot be chosen for a child in another process: its own configuration decides")]
    Option(&'static str),
    /// The directory to run in cannot be.
    #[error("cannot run in {}: {why}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
    /// The directory to run in is hidden from the child.
    #[error("cannot run in {}: it is hidden under the mode {mode}", path.display())]
    Hidden {
        /// The directory.
        path: PathBuf,
        /// The mode.
        mode: Mode,
    },
    /// A directory of its own state is not there.
    #[error("{}, which is to stay writable, cannot be used: {why}", path.display())]
    Writable {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: io::Error,
    },
    /// A directory of its own state that no confinement may leave open.
    #[error(transparent)]
    Exception(#[from] NoException),
    /// The program is nowhere.
    #[error("there is no program {} along PATH (directories that are not absolute, or inside the workspace, do not count)", .0.display())]
    NoProgram(PathBuf),
    /// The mode asks for a confinement that cannot be had.
    #[error(
        "the parent's mode is {mode}, and the child cannot be confined to it: {why}. An operator may say `confine = \"none\"`"
    )]
    CannotConfine {
        /// The mode.
        mode: Mode,
        /// What is missing.
        why: String,
    },
    /// It cannot be written down that the child is not confined.
    #[error("the child would not be confined, and its parent's log cannot say so: {0}")]
    Unrecorded(String),
    /// Its tree was not started.
    #[error(transparent)]
    Spawn(SpawnError),
    /// Something of ours panicked.
    #[error("{0} panicked")]
    Panicked(&'static str),
}

impl Refused {
    /// The same for whoever asked for the child.
    pub fn of(self, provider: &Arc<str>) -> StartError {
        match self {
            Self::Closing => StartError::ParentClosing,
            refused => StartError::Provider { provider: provider.clone(), source: refused.into() },
        }
    }

    pub(crate) fn cannot_confine(mode: Mode, CannotConfine { why }: CannotConfine) -> Self {
        Self::CannotConfine { mode, why }
    }

    pub(crate) fn no_program(name: &OsString) -> Self {
        Self::NoProgram(name.into())
    }
}

impl From<SpawnError> for Refused {
    fn from(error: SpawnError) -> Self {
        match error {
            SpawnError::Closing(_) => Self::Closing,
            error => Self::Spawn(error),
        }
    }
}

impl From<Closed> for Refused {
    fn from(_: Closed) -> Self {
        Self::Closing
    }
}

impl From<FlushError> for Refused {
    fn from(error: FlushError) -> Self {
        Self::Unrecorded(error.to_string())
    }
}
