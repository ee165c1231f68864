use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Boundary, Denial, Network, one_line};

/// Starts commands so that a boundary holds for them and for everything that they start. Looked up as
/// `dyn SandboxProvider`.
pub trait SandboxProvider: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// What it can hold on this machine. Found by trying the whole set-up, once.
    fn enforcement(&self) -> Enforcement;

    /// How to start a command so that `confinement` holds before its first instruction.
    ///
    /// # Errors
    ///
    /// What cannot be held here. The command is then not to be started at all.
    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine>;

    /// Whether a command that failed was denied something by the confinement, as far as that can be shown: `said` is the end
    /// of what it wrote. `None` where it failed by itself.
    fn evidence(&self, command: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial>;
}

/// A program with its arguments, and where it runs.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    /// The program, then its arguments. Never empty.
    pub argv: &'a [OsString],
    /// Absolute and canonical.
    pub cwd: &'a Path,
}

/// What holds for one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confinement {
    /// Which files it may read and write.
    pub boundary: Boundary,
    /// What it may do on the network.
    pub network: Network,
    /// Which directory it sees as the machine's temporary one.
    pub temp: Temp,
}

/// The temporary directory of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Temp {
    /// A directory of the session's own, in the place of `/tmp` where that can be had.
    Private(PathBuf),
    /// The machine's, with what others have there; writable where the session's directory is.
    Shared(PathBuf),
}

/// How a command is started: another program, which is told what to do over its lifeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// What is executed.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// What is written into its lifeline first.
    pub plan: Vec<u8>,
    /// Where the command finds its temporary directory.
    pub temp: PathBuf,
}

/// How much of a confinement a machine can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// All of it.
    Full,
    /// Most of it; what stays open is said, a line each.
    Partial(Vec<String>),
    /// None of it, and why. Confined commands are refused.
    None(String),
}

/// A confinement that cannot be held here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("commands cannot be confined here, so none is run under a confining mode: {why}")]
pub struct CannotConfine {
    /// What is missing, in one line.
    pub why: String,
}

impl Temp {
    /// The directory on the host.
    pub fn path(&self) -> &Path {
        match self {
            Self::Private(path) | Self::Shared(path) => path,
        }
    }
}

impl Enforcement {
    /// What people and models are told beside whatever was held in part, in one short line.
    pub fn shortfall(&self) -> Option<String> {
        const MOST: usize = 240;
        let Self::Partial(open) = self else { return None };
        let (first, more) =
            (open.first().map_or("not everything can be held", String::as_str), open.len().saturating_sub(1));
        let mut why: String = one_line(first).to_string().chars().take(MOST).collect();
        if more > 0 {
            why.push_str(&format!("; and {more} more"));
        }
        Some(format!("the sandbox holds commands only in part here: {why}"))
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Partial(open) => write!(f, "partial: {}", open.join("; ")),
            Self::None(why) => write!(f, "none: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_in_part_is_said_in_one_short_line() {
        let said = |open: &[String]| Enforcement::Partial(open.to_vec()).shortfall().unwrap();
        assert_eq!(said(&["no\nnamespaces".into()]), r"the sandbox holds commands only in part here: no\nnamespaces");
        let long = said(&["x".repeat(10_000), "y".into(), "z".into()]);
        assert!(long.len() < 320 && long.ends_with("x; and 2 more"), "{long}");
        assert!(said(&[]).contains("in part"));
        assert_eq!(Enforcement::Full.shortfall(), None);
        assert_eq!(Enforcement::None("x".into()).shortfall(), None, "nothing is run then");
    }
}
