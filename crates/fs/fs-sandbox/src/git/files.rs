//! Reading what git reads, which anybody may have written: bounded, and never waiting for a pipe.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use super::Unread;

/// How much is read at each look, in bytes.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How much may be read yet.
pub(super) struct Room(u64);

impl Default for Room {
    fn default() -> Self {
        Self(MAX_BYTES)
    }
}

impl Room {
    /// What a file holds. Nothing, where there is none or something that git would not read to its end.
    pub(super) fn content(&mut self, path: &Path) -> Result<Vec<u8>, Unread> {
        let failed = |source: io::Error| Unread::Io { path: path.to_owned(), source };
        if !is_file(path).map_err(failed)? {
            return Ok(Vec::new());
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open(path, flags, Mode::empty()).map(File::from) {
            Ok(file) => file,
            Err(error) if is_missing(&error.into()) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error.into())),
        };
        // It may have been replaced since it was looked at.
        if !file.metadata().map_err(failed)?.is_file() {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        file.take(self.0 + 1).read_to_end(&mut bytes).map_err(failed)?;
        self.0 = self.0.checked_sub(bytes.len() as u64).ok_or_else(|| Unread::TooLong { path: path.to_owned() })?;
        Ok(bytes)
    }

    /// The place that a file in the place of a `.git` directory names.
    pub(super) fn git_file(&mut self, path: &Path) -> Result<Option<PathBuf>, Unread> {
        Ok(self.content(path)?.strip_prefix(b"gitdir: ").and_then(place))
    }

    /// The place that a file such as `commondir` or a worktree's `gitdir` names.
    pub(super) fn named(&mut self, path: &Path) -> Result<Option<PathBuf>, Unread> {
        Ok(place(&self.content(path)?))
    }
}

/// Whether a file is there, links followed.
pub(super) fn is_file(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.is_file()),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether there is nothing by a name.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A text that is nothing but a path, as git takes it: up to the end of its lines, or a NUL.
fn place(text: &[u8]) -> Option<PathBuf> {
    let text = text.split(|byte| *byte == 0).next()?;
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    Some(PathBuf::from(OsString::from_vec(text[..=end].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_git_reads_it() {
        for (text, want) in [
            (&b"../a b\n"[..], Some("../a b")),
            (b"a\r\n\n", Some("a")),
            (b"a\nb\n", Some("a\nb")),
            (b"a\0b", Some("a")),
            (b"\n", None),
            (b"", None),
        ] {
            assert_eq!(place(text), want.map(PathBuf::from), "{text:?}");
        }
    }

    #[test]
    fn what_is_read_is_bounded_and_a_part_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let (whole, more) = (dir.path().join("whole"), dir.path().join("more"));
        std::fs::write(&whole, vec![b'x'; 4 * 1024 * 1024]).unwrap();
        std::fs::write(&more, "x").unwrap();
        let mut room = Room::default();
        assert_eq!(room.content(&whole).unwrap().len(), 4 * 1024 * 1024);
        assert!(matches!(room.content(&more), Err(Unread::TooLong { path }) if path == more));
        assert!(room.content(&dir.path().join("none")).unwrap().is_empty());
    }
}
