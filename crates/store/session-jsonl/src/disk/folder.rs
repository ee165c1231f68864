use std::any::Any;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, copy_file_range, fstat, fsync};
use rustix::fs::{linkat, openat, renameat, renameat_with, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::lease::{self, Spare};
use super::{Blob, Disk, How, Leased, Stat};

/// A real directory, held open once it has been found.
pub(crate) struct Folder {
    path: PathBuf,
    handle: RwLock<Option<Arc<OwnedFd>>>,
    spare: Arc<Spare>,
    /// Whether there are files without a name, once that is known.
    nameless: OnceLock<bool>,
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
        Self { path, handle: RwLock::default(), spare: Arc::default(), nameless: OnceLock::new() }
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
        OpenFile::of(file)
    }

    /// A file without a name; `None` where there are none, or they cannot be given one.
    fn nameless(&self) -> Option<io::Result<OpenFile>> {
        if self.nameless.get() == Some(&false) {
            return None;
        }
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let begun = self.handle().and_then(|folder| OpenFile::of(openat(&*folder, c".", flags, PRIVATE_FILE)?));
        let is_reached = |file: &OpenFile| {
            let found = statat(CWD, file.by_descriptor(), AtFlags::empty());
            found.is_ok_and(|found| Stat::of(&found).identity == file.as_opened.identity)
        };
        self.nameless.get_or_init(|| begun.as_ref().is_ok_and(is_reached)).then_some(begun)
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
            How::New => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        Ok(Box::new(self.file(name, flags)?))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        Ok(Stat::of(&statat(&*self.handle()?, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    fn begin(&self, unfinished: &str) -> io::Result<Box<dyn Blob>> {
        // On a disk that is being synced a name in a directory costs more to make than a sync does.
        let file = match self.nameless() {
            Some(file) => file?,
            None => self.file(unfinished, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?,
        };
        Ok(Box::new(file))
    }

    fn finish(&self, begun: &dyn Blob, unfinished: &str, name: &str) -> io::Result<()> {
        let folder = &*self.handle()?;
        if self.nameless.get() == Some(&true)
            && let Some(file) = (begun as &dyn Any).downcast_ref::<OpenFile>()
        {
            return Ok(linkat(CWD, file.by_descriptor(), folder, name, AtFlags::SYMLINK_FOLLOW)?);
        }
        match renameat_with(folder, unfinished, folder, name, RenameFlags::NOREPLACE) {
            // Not every file system knows the flag. The lease keeps the name free there.
            Err(Errno::INVAL | Errno::NOSYS) => Ok(renameat(folder, unfinished, folder, name)?),
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

impl OpenFile {
    fn of(file: OwnedFd) -> io::Result<Self> {
        let found = fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(Self { file: file.into(), as_opened: Stat::of(&found) }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
        }
    }

    /// The path to it that needs no name.
    fn by_descriptor(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
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
    fn a_file_gets_a_name_that_is_free_and_no_other() {
        for without_a_name in [true, false] {
            let home = tempfile::tempdir().expect("a temporary directory can be made");
            let folder = Folder::new(home.path().to_owned());
            if !without_a_name {
                folder.nameless.set(false).expect("nobody asked yet");
            }
            let write = |text: &str| {
                let file = folder.begin("unfinished").expect("it can be made");
                file.write_all_at(text.as_bytes(), 0).expect("it can be written");
                file
            };
            let seen = || {
                let mut names = folder.names().expect("it can be read");
                names.retain(|name| !name.starts_with('.'));
                names
            };
            let one = write("one");
            let is_nameless = *folder.nameless.get().expect("it was asked");
            assert_eq!(seen(), if is_nameless { &[][..] } else { &["unfinished"] });
            folder.finish(&*one, "unfinished", "log").expect("it is free");
            let refused = folder.finish(&*write("two"), "unfinished", "log").expect_err("it is taken");
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(std::fs::read(home.path().join("log")).expect("it is there"), b"one");
        }
    }
}
