use std::io;
use std::path::PathBuf;

use sandbox::{CannotConfine, Denial, one_line};
use subprocess::SpawnError;

use crate::MAX_COMMAND_BYTES;

/// Why nothing of a command line was run. The texts are for a model: each is short, true, and says what would be right.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// It cannot be run under any mode.
    #[error(transparent)]
    Invalid(#[from] InvalidLine),
    /// The mode does not let it begin where it was to.
    #[error("{0}\nTether's own files are not for tools")]
    Denied(Denial),
    /// The mode confines commands, and nothing here can hold that.
    #[error(transparent)]
    NotEnforceable(#[from] CannotConfine),
    /// It cannot be told what is protected in the workspace, so a command there is not run under a mode that protects it.
    #[error("the command was not run: what is protected in the workspace cannot be told: {}", one_line(.0))]
    Withheld(String),
    /// The sandbox did not start. It is no failure of the command, and nothing was denied.
    #[error("the sandbox could not be started, so the command was not run: {stage}: {}", one_line(.why))]
    SandboxFailed {
        /// What it was about.
        stage: String,
        /// What the machine said.
        why: String,
    },
    /// The command could not be started, without a sandbox in between.
    #[error("the command could not be started: {stage}: {}", one_line(.why))]
    NotStarted {
        /// What it was about.
        stage: String,
        /// What the machine said.
        why: String,
    },
    /// No process could be made.
    #[error("the command could not be started: {0}")]
    Spawn(#[from] SpawnError),
    /// The agent is closing.
    #[error("the agent is closing, and starts nothing any more")]
    Closing,
}

/// What is wrong with a command line.
#[derive(Debug, thiserror::Error)]
pub enum InvalidLine {
    /// There is none.
    #[error("`command` is empty: say what to run")]
    Empty,
    /// It holds what no process can be given.
    #[error("`command` holds a NUL character, which no command line can")]
    Nul,
    /// It is too long.
    #[error("`command` has {bytes} bytes, at most {MAX_COMMAND_BYTES} are run: write a script to a file and run that")]
    TooLong {
        /// How many bytes it has.
        bytes: usize,
    },
    /// It would wait for a person.
    #[error("`{}` waits for a person at a terminal, and there is none, so nothing was run: {hint}", one_line(.program))]
    Interactive {
        /// What waits.
        program: String,
        /// What to do instead.
        hint: &'static str,
    },
    /// It cannot begin where it is to.
    #[error("`cwd`: {why}: {}", one_line(&.path.to_string_lossy()))]
    Cwd {
        /// Where.
        path: PathBuf,
        /// Why not.
        why: NoCwd,
    },
}

/// Why a command cannot begin in a directory.
#[derive(Debug, thiserror::Error)]
pub enum NoCwd {
    /// There is nothing.
    #[error("no such directory")]
    Missing,
    /// It is something else.
    #[error("not a directory")]
    NotADirectory,
    /// Whatever else the machine says.
    #[error("cannot be entered ({0})")]
    Io(io::Error),
}

impl From<io::Error> for NoCwd {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::NotADirectory => Self::NotADirectory,
            _ => Self::Io(error),
        }
    }
}

/// Why an agent has no command line.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No directory could be made for its output.
    #[error("no temporary directory could be made: {0}")]
    Scratch(#[source] io::Error),
    /// There is no shell to run lines with.
    #[error("there is no shell here: neither `bash` nor `sh` was found")]
    NoInterpreter,
    /// The agent is closing.
    #[error("the agent is closing")]
    Closing(#[from] context::Closing),
}
