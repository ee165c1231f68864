use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use sandbox::{Denial, Operation};

use crate::Kind;

/// Why an operation on a file failed. The texts are for a model: each is short, true, and names the path.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The sandbox refused it. The first line of the text is the denial's own, the second says why.
    #[error("{0}\n{1}")]
    Denied(Denial, Why),
    /// There is nothing.
    #[error("no such file or directory: {}", Shown(.0))]
    NotFound(PathBuf),
    /// A directory where a file was wanted.
    #[error("is a directory: {}", Shown(.0))]
    IsADirectory(PathBuf),
    /// Something on the way, or at the end of it, is not a directory.
    #[error("not a directory, or a path through something that is not one: {}", Shown(.0))]
    NotADirectory(PathBuf),
    /// A pipe, socket, device or dangling link where a file was wanted.
    #[error("not a regular file but a {kind}: {}", Shown(.path))]
    NotAFile {
        /// What was asked for.
        path: PathBuf,
        /// What is there.
        kind: Kind,
    },
    /// More bytes than are read or written at once.
    #[error("too large: {} has {size} bytes, at most {limit} are handled at once", Shown(.path))]
    TooLarge {
        /// What was asked for.
        path: PathBuf,
        /// How many bytes it has, at least.
        size: u64,
        /// How many it may have.
        limit: u64,
    },
    /// Text was wanted.
    #[error("not UTF-8 text: {}", Shown(.0))]
    NotUtf8(PathBuf),
    /// No space left, or the quota is used up. What was there before is still there.
    #[error("no space left for {}; its former content is unchanged", Shown(.0))]
    Full(PathBuf),
    /// Somebody else changed the file, or the way to it, during the operation; nothing was written.
    #[error("{} changed at that very moment, and nothing was written: read it again", Shown(.0))]
    Changed(PathBuf),
    /// Not a path that can be used.
    #[error("invalid path `{}`: {why}", Shown(Path::new(.path)))]
    InvalidPath {
        /// What was given, cut to what is worth showing.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What a [`crate::Change`] said. Nothing was written.
    #[error("{0}")]
    Refused(String),
    /// The agent is closing, and nothing was done.
    #[error("the agent is closing")]
    Closing,
    /// Whatever else the machine says.
    #[error("cannot {operation} {}: {source}", Shown(.path))]
    Io {
        /// What was tried.
        operation: Operation,
        /// On what.
        path: PathBuf,
        /// What the machine said.
        source: io::Error,
    },
}

/// Why the sandbox refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// The mode lets nothing be written.
    ReadOnly,
    /// It is, or leads, outside what may be written.
    Outside,
    /// It is protected inside what may be written.
    Protected,
    /// It is Tether's own.
    Home,
    /// It is a view into running processes.
    Process,
    /// The file has other names, which a write would reach or miss unseen.
    HardLink,
    /// The last name is a symbolic link.
    Symlink,
}

impl FsError {
    /// The sandbox's refusal, if this is one.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Denied(denial, _) => Some(denial),
            Self::NotFound(_)
            | Self::IsADirectory(_)
            | Self::NotADirectory(_)
            | Self::NotAFile { .. }
            | Self::TooLarge { .. }
            | Self::NotUtf8(_)
            | Self::Full(_)
            | Self::Changed(_)
            | Self::InvalidPath { .. }
            | Self::Refused(_)
            | Self::Closing
            | Self::Io { .. } => None,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadOnly => "this session may read files but not write them",
            Self::Outside => "only files below the workspace root may be written",
            Self::Protected => "the path is protected: what is written there could run code on this machine later",
            Self::Home => "Tether's own files are not for tools",
            Self::Process => "views into running processes are not for tools",
            Self::HardLink => "the file has more than one name (hard links): writing it would reach beyond this path",
            Self::Symlink => "a symbolic link on the path is not followed here: name the file that it leads to",
        })
    }
}

/// A path as one line of text.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        sandbox::one_line(&self.0.to_string_lossy()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use sandbox::Mode;

    use super::*;

    #[test]
    fn every_text_names_the_path_on_one_line() {
        let path = || PathBuf::from("/w/a\nb");
        let io = || io::Error::from(io::ErrorKind::PermissionDenied);
        let cases = [
            (FsError::NotFound(path()), "no such file or directory: /w/a\\nb"),
            (FsError::IsADirectory(path()), "is a directory: /w/a\\nb"),
            (FsError::NotAFile { path: path(), kind: Kind::Pipe }, "not a regular file but a named pipe: /w/a\\nb"),
            (FsError::NotUtf8(path()), "not UTF-8 text: /w/a\\nb"),
            (FsError::InvalidPath { path: "a\0".into(), why: "it holds NUL" }, "invalid path `a\\0`: it holds NUL"),
            (FsError::Refused("`x` occurs twice".into()), "`x` occurs twice"),
            (
                FsError::TooLarge { path: path(), size: 9, limit: 8 },
                "too large: /w/a\\nb has 9 bytes, at most 8 are handled at once",
            ),
            (
                FsError::Io { operation: Operation::Read, path: path(), source: io() },
                "cannot read /w/a\\nb: permission denied",
            ),
        ];
        for (error, want) in cases {
            assert_eq!(error.to_string(), want);
            assert_eq!(error.denial(), None);
        }
    }

    #[test]
    fn a_denial_comes_first_and_says_why_second() {
        let denial = Denial::new(Operation::Write, "/etc/a\nb", Mode::WorkspaceWrite);
        let error = FsError::Denied(denial.clone(), Why::Outside);
        let want = "sandbox denied: write /etc/a\\nb (mode workspace-write)\n\
                    only files below the workspace root may be written";
        assert_eq!(error.to_string(), want);
        assert_eq!(error.denial(), Some(&denial));
    }
}
