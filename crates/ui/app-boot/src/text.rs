//! Reading files that somebody else may have prepared.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::ConfigError;

/// The longest file that is read, in bytes.
pub(crate) const LIMIT: u64 = 256 * 1024;

/// A file of the user's, if it is there. It may be a link, as some people keep their files elsewhere.
pub(crate) fn read_users(path: &Path) -> Result<Option<String>, ConfigError> {
    read(path, open(path))
}

/// A file of a project's, if it is there. A link is refused: it could lead to any file there is, and what is wrong with
/// that would be told with its words.
pub(crate) fn read_projects(root: &Path, dir: &str, name: &str) -> Result<Option<String>, ConfigError> {
    let (dir, path) = (root.join(dir), root.join(dir).join(name));
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let refuse = |file: PathBuf| {
        let message = "a link: a project's configuration is a file of its own, not one elsewhere".to_owned();
        Err(ConfigError::Unreadable { file, message })
    };
    let opened = openat(CWD, &dir, flags | OFlags::DIRECTORY, Mode::empty())
        .map_err(|error| (error, &dir))
        .and_then(|opened| openat(opened, name, flags, Mode::empty()).map_err(|error| (error, &path)));
    match opened {
        // With DIRECTORY a link is no directory.
        Err((rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR, at)) if is_link(at) => refuse(at.clone()),
        opened => read(&path, opened.map(File::from).map_err(|(error, _)| error.into())),
    }
}

/// A file that was named on purpose, and has to be there.
pub(crate) fn read_named(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let read = open(path).and_then(regular).and_then(bounded);
    read.map_err(|error| ConfigError::Unreadable { file: path.to_owned(), message: error.to_string() })
}

fn open(path: &Path) -> io::Result<File> {
    // A pipe that nobody writes would be waited for.
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

fn read(path: &Path, opened: io::Result<File>) -> Result<Option<String>, ConfigError> {
    let unreadable = |message: String| ConfigError::Unreadable { file: path.to_owned(), message };
    let file = match opened {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened.map_err(|error| unreadable(error.to_string()))?,
    };
    let bytes = regular(file).and_then(bounded).map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        unreadable(format!("line {} is not UTF-8", line + 1))
    })
}

/// The file that is open, not the one that has its name by now.
fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("not a regular file")),
    }
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LIMIT {
        true => Err(io::Error::other(format!("more than {LIMIT} bytes"))),
        false => Ok(bytes),
    }
}
