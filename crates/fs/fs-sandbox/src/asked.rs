//! What a caller asked for, as text: checked for what the kernel cannot say well, made absolute, compared loosely.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use fs::{FsError, MAX_PATH_BYTES};
use sandbox::{Denial, Mode, Operation};

/// The longest name of one entry, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// How much of an invalid path is shown, in characters.
const SHOWN_CHARS: usize = 120;

/// A path that somebody asked something of.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    /// Absolute, and otherwise as it was given.
    pub(crate) full: PathBuf,
    /// Absolute, without `.` and `..`, by its text alone: for people, never for opening.
    pub(crate) shown: PathBuf,
    /// Whether its text can only mean a directory.
    pub(crate) names_directory: bool,
}

impl Asked {
    pub(crate) fn new(operation: Operation, root: &Path, path: &str) -> Result<Self, FsError> {
        let why = if path.is_empty() {
            "it is empty"
        } else if path.contains('\0') {
            "it holds a NUL character"
        } else if path.len() > MAX_PATH_BYTES {
            "it is longer than 4095 bytes"
        } else if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
            "a name in it is longer than 255 bytes"
        } else if path == "~" || path.starts_with("~/") {
            "`~` is not expanded: give an absolute path, or one relative to the workspace root"
        } else {
            let full = root.join(path);
            let shown = lexical(&full);
            let names_directory = path.ends_with('/') || matches!(path.rsplit('/').next(), Some("." | ".."));
            return Ok(Self { operation, full, shown, names_directory });
        };
        Err(invalid(path, why))
    }

    pub(crate) fn invalid(&self, why: &'static str) -> FsError {
        invalid(&self.shown.to_string_lossy(), why)
    }

    pub(crate) fn denied(&self, mode: Mode, why: fs::Why) -> FsError {
        FsError::Denied(Denial::new(self.operation, self.shown.to_string_lossy(), mode), why)
    }

    /// What the machine said, in our words.
    pub(crate) fn failed(&self, error: impl Into<std::io::Error>) -> FsError {
        use rustix::io::Errno;
        let source = error.into();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => FsError::NotFound(self.shown.clone()),
            Some(Errno::NOTDIR) => FsError::NotADirectory(self.shown.clone()),
            Some(Errno::ISDIR) => FsError::IsADirectory(self.shown.clone()),
            Some(Errno::NOSPC | Errno::DQUOT) => FsError::Full(self.shown.clone()),
            Some(Errno::NAMETOOLONG) => self.invalid("it is longer than this file system takes"),
            _ => FsError::Io { operation: self.operation, path: self.shown.clone(), source },
        }
    }
}

fn invalid(path: &str, why: &'static str) -> FsError {
    FsError::InvalidPath { path: path.chars().take(SHOWN_CHARS).collect(), why }
}

/// `path` without `.` and `..`, by its text alone.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

/// The directory part of `path` and its last name. No name where it ends in `..` or is nothing but a root.
pub(crate) fn split(path: &Path) -> (&Path, Option<&OsStr>) {
    match path.file_name() {
        Some(name) => (path.parent().unwrap_or(Path::new("")), Some(name)),
        None => (path, None),
    }
}

/// A name as the most forgiving file system compares it, and git where it guards `.git`: without regard to case, to
/// characters that do not show, to dots and spaces at the end.
pub(crate) fn folded(name: &OsStr) -> String {
    let shows = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}');
    let upper = name.to_string_lossy().chars().filter(shows).flat_map(char::to_uppercase).collect::<String>();
    let lower = upper.to_lowercase();
    match lower.trim_end_matches(['.', ' ']) {
        "git~1" => ".git".into(),
        "" => lower,
        trimmed => trimmed.into(),
    }
}

/// Whether `path` is `top` or below it, names compared loosely.
pub(crate) fn is_below(path: &Path, top: &Path) -> bool {
    let mut parts = path.components().map(|part| folded(part.as_os_str()));
    top.components().all(|part| parts.next() == Some(folded(part.as_os_str())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_file_system_takes_for_one_fold_together() {
        for alias in [".git", ".GIT", ".Git.", ".git ", ".g\u{200c}it", "\u{feff}.git", "GIT~1", ".gıt"] {
            assert_eq!(folded(OsStr::new(alias)), ".git", "{alias:?}");
        }
        assert_eq!(folded(OsStr::new("hooKſ")), "hooks");
        for other in ["git", ".gitignore", ".github", "..", "."] {
            assert_ne!(folded(OsStr::new(other)), ".git", "{other:?}");
        }
    }

    #[test]
    fn below_is_by_whole_names() {
        let below = |path: &str, top: &str| is_below(Path::new(path), Path::new(top));
        assert!(below("/w/.git/hooks/x", "/w/.GIT/Hooks") && below("/w/a", "/w/a"));
        assert!(!below("/w/.git/hooks2", "/w/.git/hooks") && !below("/w/.git", "/w/.git/hooks"));
    }

    #[test]
    fn what_the_machine_says_keeps_its_meaning() {
        use rustix::io::Errno;
        let asked = Asked::new(Operation::Write, Path::new("/w"), "a").unwrap();
        let said = |error: Errno| asked.failed(error).to_string();
        assert_eq!(said(Errno::NOENT), "no such file or directory: /w/a");
        assert_eq!(said(Errno::ISDIR), "is a directory: /w/a");
        assert!(matches!(asked.failed(Errno::NOTDIR), FsError::NotADirectory(_)));
        assert!(matches!(asked.failed(Errno::NOSPC), FsError::Full(_)));
        assert!(matches!(asked.failed(Errno::DQUOT), FsError::Full(_)));
        assert!(matches!(asked.failed(Errno::NAMETOOLONG), FsError::InvalidPath { .. }));
        assert!(said(Errno::ACCESS).starts_with("cannot write /w/a: Permission denied"));
    }

    #[test]
    fn what_the_kernel_cannot_say_well_is_said_here() {
        let long = format!("a/{}", "n".repeat(256));
        let deep = "a/".repeat(2048);
        for path in ["", "a\0b", &long, &deep, "~", "~/x"] {
            let asked = Asked::new(Operation::Read, Path::new("/w"), path);
            assert!(matches!(asked, Err(FsError::InvalidPath { .. })), "{path:?}");
        }
        let asked = Asked::new(Operation::Read, Path::new("/w"), "a/./b/../c\n/").unwrap();
        assert_eq!((asked.shown.to_str(), asked.names_directory), (Some("/w/a/c\n"), true));
    }
}
