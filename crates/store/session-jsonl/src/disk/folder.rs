use std::any::Any;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, copy_file_range, fstat, fsync};
use rustix::fs::{openat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::lease::{self, Spare};
use super::{Blob, Disk, How, Leased, Stat};

/// A real directory, held open once it has been found.
pub(crate) struct Folder {
    path: PathBuf,
    handle: RwLock<Option<Arc<OwnedFd>>>,
    spare: Arc<Spare>,
}

/// A real file.
pub(super) struct OpenFile {
    pub(super) file: File,
    as_opened: Stat,
}

const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
const PRIVATE_FOLDER: u32 = 0o700;

impl Folder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, handle: RwLock::default(), spare: Arc::default() }
    }

    pub(super) fn handle(&self) -> io::Result<Arc<OwnedFd>> {
        if let Some(handle) = &*self.handle.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(handle.clone());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &self.path, flags, Mode::empty())?;
        let mut handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        Ok(handle.get_or_insert_with(|| Arc::new(opened)).clone())
    }

    /// Whether the directory is there, and the one that is held open.
    fn is_there(&self) -> io::Result<bool> {
        match self.handle() {
            Ok(handle) if fstat(&handle)?.st_nlink > 0 => Ok(true),
            Ok(_) => {
                *self.handle.write().unwrap_or_else(PoisonError::into_inner) = None;
                Ok(false)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<OpenFile> {
        // Without `NONBLOCK` a pipe in place of a log would block its reader for good.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = openat(&*self.handle()?, name, flags, PRIVATE_FILE);
        let file = opened.map_err(|errno| match errno {
            Errno::LOOP => io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, which is not followed"),
            errno => errno.into(),
        })?;
        let found = fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(OpenFile { file: file.into(), as_opened: Stat::of(&found) }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    pub(super) fn spare(&self) -> &Arc<Spare> {
        &self.spare
    }

    /// The file of a lock, made if it is not there.
    pub(super) fn lock_file(&self, name: &str) -> io::Result<OpenFile> {
        self.file(name, OFlags::RDWR | OFlags::CREATE)
    }
}

impl Disk for Folder {
    fn prepare(&self) -> io::Result<()> {
        if self.is_there()? {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(PRIVATE_FOLDER).create(&self.path)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&*self.handle()?)? {
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, how: How) -> io::Result<Box<dyn Blob>> {
        let flags = match how {
            How::Read => OFlags::RDONLY,
            How::Write => OFlags::RDWR,
            How::Replace => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
            How::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        Ok(Box::new(self.file(name, flags)?))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(Stat::of(&statat(&*self.handle()?, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let folder = &*self.handle()?;
        match renameat_with(folder, from, folder, to, RenameFlags::NOREPLACE) {
            // Not every file system knows the flag. The lease keeps the name free there.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(folder, from, folder, to)?),
            renamed => Ok(renamed?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&*self.handle()?, name, AtFlags::empty())?)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(fsync(&*self.handle()?)?)
    }

    fn lease(&self, name: &str) -> io::Result<Leased> {
        lease::take(self, name)
    }

    fn close(&self) {
        self.spare.close();
    }

    fn holder(&self, name: &str) -> Option<u32> {
        let pid = pid_in(&self.file(name, OFlags::RDONLY).ok()?.file)?;
        let lives = match test_kill_process(Pid::from_raw(i32::try_from(pid).ok()?)?) {
            // Somebody else's process lives too.
            Ok(()) | Err(Errno::PERM) => true,
            Err(_) => false,
        };
        lives.then_some(pid)
    }
}

/// Whose id is in a lock file.
pub(super) fn pid_in(file: &File) -> Option<u32> {
    let mut bytes = [0; 16];
    let count = file.read_at(&mut bytes, 0).ok()?;
    std::str::from_utf8(&bytes[..count]).ok()?.strip_suffix('\n')?.parse().ok()
}

impl Stat {
    pub(super) fn of(stat: &rustix::fs::Stat) -> Self {
        let millis = stat.st_mtime.saturating_mul(1_000).saturating_add(stat.st_mtime_nsec as i64 / 1_000_000);
        Self {
            len: u64::try_from(stat.st_size).unwrap_or(0),
            modified: u64::try_from(millis).unwrap_or(0),
            identity: (stat.st_dev, stat.st_ino),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

impl Blob for OpenFile {
    fn as_opened(&self) -> Stat {
        self.as_opened
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }

    fn copy_at(&self, offset: u64, source: &dyn Blob, from: u64, len: u64) -> io::Result<u64> {
        let Some(source) = (source as &dyn Any).downcast_ref::<Self>() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let (mut from, mut offset) = (from, offset);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        Ok(copy_file_range(&source.file, Some(&mut from), &self.file, Some(&mut offset), len)? as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_not_replaced() {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let folder = Folder::new(home.path().to_owned());
        for name in ["one", "two"] {
            let file = folder.open(name, How::New).expect("it is new");
            file.write_all_at(name.as_bytes(), 0).expect("it can be written");
        }
        let refused = folder.rename("one", "two").expect_err("it is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(home.path().join("two")).expect("it is there"), b"two");
    }
}
