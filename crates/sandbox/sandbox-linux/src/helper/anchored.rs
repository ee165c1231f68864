use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::mounts;

/// A name in the directory that it was in, and not in one that a command has put a link to in its place.
pub(super) struct Anchored {
    path: PathBuf,
    directory: OwnedFd,
}

impl Anchored {
    /// No part of the path above the name may be a link.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let (above, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        let directory = mounts::at(above)?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Self { path, directory })
    }

    /// Does something while the directory may be written by its owner, and closes it again as it was.
    pub(super) fn opened(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let closed = Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string());
        let before = fs::metadata(&closed)?.permissions();
        fs::set_permissions(&closed, Permissions::from_mode(before.mode() | 0o700))?;
        let done = work();
        fs::set_permissions(&closed, before)?;
        done
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
