//! What this user's helpers have put where, a file each. No confined command sees the machine's memory file system.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::{Id, Locked};

const PLACE: &str = "/dev/shm";

/// The directory of them.
pub(super) struct Records(PathBuf);

impl Records {
    /// `None` where there is none that is this user's alone.
    pub(super) fn open() -> Option<Self> {
        let home = Path::new(PLACE).join(format!("tether-{}", geteuid().as_raw()));
        match DirBuilder::new().mode(0o700).create(&home) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let found = home.symlink_metadata().ok()?;
        let ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode().trailing_zeros() >= 6;
        ours.then_some(Self(home))
    }

    pub(super) fn add(&self, id: Id, path: &Path) -> io::Result<()> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        options.open(self.of(id))?.write_all(path.as_os_str().as_bytes())
    }

    pub(super) fn has(&self, id: Id) -> bool {
        self.of(id).symlink_metadata().is_ok()
    }

    /// Takes away what was put, unless somebody else keeps it: it is up to them then.
    pub(super) fn take(&self, locked: Locked) -> io::Result<()> {
        if !locked.is_last() {
            return Ok(());
        }
        let cleared = if locked.is_there() { locked.clear() } else { Ok(()) };
        // Its identity belongs to nothing else until the lock is dropped.
        cleared.and(self.forget(locked.id))
    }

    /// Takes away what is left below `roots`.
    pub(super) fn sweep(&self, roots: &[&Path]) -> io::Result<()> {
        let mut left: Vec<_> = fs::read_dir(&self.0)?.flatten().filter_map(|entry| parse(entry.path())).collect();
        left.retain(|(path, _)| roots.iter().any(|root| path.starts_with(root)));
        left.sort_by(|one, other| other.cmp(one));
        left.into_iter().try_for_each(|(path, id)| match Locked::at_once(&path) {
            Ok(Some(locked)) if locked.id == id => self.take(locked),
            Ok(_) => self.forget(id),
            // It is kept, or cannot be got at now.
            Err(_) => Ok(()),
        })
    }

    fn forget(&self, id: Id) -> io::Result<()> {
        match fs::remove_file(self.of(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn of(&self, (device, inode): Id) -> PathBuf {
        self.0.join(format!("{device:x}-{inode:x}.put"))
    }
}

/// What a record says. What cannot be read was cut off with the helper that wrote it, or is another's by now.
fn parse(record: PathBuf) -> Option<(PathBuf, Id)> {
    let name = record.file_name()?.to_str()?.strip_suffix(".put")?.split_once('-')?;
    let id = (u64::from_str_radix(name.0, 16).ok()?, u64::from_str_radix(name.1, 16).ok()?);
    let path = PathBuf::from(OsString::from_vec(fs::read(&record).ok()?));
    path.is_absolute().then_some((path, id))
}
