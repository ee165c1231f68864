//! What is started: a helper, and what it is told.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use context::Closing;

use crate::Environment;
use crate::helper::{GUARD, MAX_PLAN, Plan};

/// A helper to start.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The helper's executable.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// What is written into its lifeline first.
    pub plan: Vec<u8>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its environment, which is the command's too.
    pub env: Environment,
    /// What the command reads from and writes to.
    pub streams: Streams,
}

/// The standard streams of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// It reads nothing; what it writes to its output and to its errors comes in the order in which it was written.
    Captured,
    /// A pipe of its own each: see [`Process::pipes`](crate::Process::pipes).
    Piped,
    /// The harness's own.
    Inherited,
}

/// Why a tree was not started. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The scope is closing.
    #[error(transparent)]
    Closing(#[from] Closing),
    /// The path of the helper is empty.
    #[error("no program to start: the path of the helper is empty")]
    NoProgram,
    /// A NUL byte where the system takes none.
    #[error("{what} holds a NUL byte, which the system cannot pass on")]
    Nul {
        /// Which text it is.
        what: String,
    },
    /// A variable with a name that is none.
    #[error("`{name}` names no environment variable: a name is not empty and has no `=`")]
    VariableName {
        /// The name.
        name: String,
    },
    /// The plan is longer than a helper reads.
    #[error("the plan of the command has {len} bytes; a helper reads at most {MAX_PLAN}")]
    PlanTooLong {
        /// Its length.
        len: usize,
    },
    /// The directory to run in cannot be entered.
    #[error("cannot run in {}: {source}", path.display())]
    Cwd {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No pipe to talk to the helper with.
    #[error("no pipe for a command: {0}")]
    Pipe(#[source] io::Error),
    /// The helper did not start.
    #[error("cannot start the helper {}: {source}", program.display())]
    Helper {
        /// Its executable.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// How to start a command that is not confined: the program, its arguments and the plan of a helper that holds the tree
/// and nothing else. `argv` is a program, looked for as a shell would, and its arguments.
///
/// What cannot be executed, such as an empty `argv`, is reported by the helper.
pub fn guard(helper: &Path, argv: &[OsString], cwd: &Path) -> (PathBuf, Vec<OsString>, Vec<u8>) {
    (helper.to_owned(), vec![GUARD.into()], Plan { cwd: cwd.to_owned(), argv: argv.to_vec() }.encode())
}

impl Spawn {
    /// Whether it can be started, as far as that can be told before.
    pub(crate) fn check(&self) -> Result<(), SpawnError> {
        if self.program.as_os_str().is_empty() {
            return Err(SpawnError::NoProgram);
        }
        no_nul(self.program.as_os_str(), || "the path of the helper".to_owned())?;
        no_nul(self.cwd.as_os_str(), || "the directory to run in".to_owned())?;
        for (at, arg) in self.args.iter().enumerate() {
            no_nul(arg, || format!("argument {}", at + 1))?;
        }
        for (name, value) in self.env.iter() {
            let shown = name.to_string_lossy();
            no_nul(name, || format!("the name of the variable `{}`", shown.escape_debug()))?;
            no_nul(value, || format!("the variable `{shown}`"))?;
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return Err(SpawnError::VariableName { name: shown.into_owned() });
            }
        }
        if self.plan.len() > MAX_PLAN {
            return Err(SpawnError::PlanTooLong { len: self.plan.len() });
        }
        self.check_cwd()
    }

    pub(crate) fn check_cwd(&self) -> Result<(), SpawnError> {
        let refused = |source| SpawnError::Cwd { path: self.cwd.clone(), source };
        let is_directory = std::fs::metadata(&self.cwd).map_err(refused)?.is_dir();
        if is_directory { Ok(()) } else { Err(refused(io::ErrorKind::NotADirectory.into())) }
    }
}

fn no_nul(text: &OsStr, what: impl FnOnce() -> String) -> Result<(), SpawnError> {
    if text.as_bytes().contains(&0) { Err(SpawnError::Nul { what: what() }) } else { Ok(()) }
}
