//! Handles: what the kernel resolved, held open so that it stays what it was.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use fs::Kind;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// How often a resolution that a concurrent rename disturbed is tried again.
const ATTEMPTS: usize = 64;

/// How many directories up a path can be.
const MAX_DEPTH: usize = 4096;

/// Something in the file system, held without being opened for reading or writing. While it is held its identity
/// belongs to nothing else.
#[derive(Debug)]
pub(crate) struct Handle {
    file: File,
    pub(crate) meta: Metadata,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    device: u64,
    inode: u64,
}

/// How far a resolution may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Beneath the starting handle, at every step.
    Beneath,
    /// Anywhere that names lead to, but not through the links by which `/proc` shows processes.
    Named,
    /// Anywhere.
    Any,
}

impl Reach {
    fn flags(self) -> ResolveFlags {
        match self {
            Self::Beneath => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Self::Named => ResolveFlags::NO_MAGICLINKS,
            Self::Any => ResolveFlags::empty(),
        }
    }
}

impl Handle {
    /// The directory that an absolute path names.
    pub(crate) fn root(path: &Path) -> Result<Self, Errno> {
        Self::hold(open(CWD, path, OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::empty())?)
    }

    /// The directory that `path` leads to from here. Nothing: this one.
    pub(crate) fn directory(&self, path: &Path, reach: Reach) -> Result<Self, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Self::hold(open(&self.file, path, OFlags::PATH | OFlags::DIRECTORY, reach.flags())?)
    }

    /// What `path` leads to from here, links followed, wherever it is.
    pub(crate) fn thing(&self, path: &Path) -> Result<Self, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Self::hold(open(&self.file, path, OFlags::PATH, ResolveFlags::empty())?)
    }

    /// The entry `name` of this directory, itself where it is a link.
    pub(crate) fn entry(&self, name: &OsStr) -> Result<Self, Errno> {
        Self::hold(open(&self.file, Path::new(name), OFlags::PATH | OFlags::NOFOLLOW, ResolveFlags::empty())?)
    }

    /// The entry `name` of this directory, which must be a directory and no link.
    pub(crate) fn subdirectory(&self, name: &OsStr) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        Self::hold(open(&self.file, Path::new(name), flags, ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?)
    }

    /// Opens the entry `name` of this directory for reading: never through a link, never waiting for a pipe.
    pub(crate) fn reader(&self, name: &OsStr) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        open(&self.file, Path::new(name), flags, ResolveFlags::empty())
    }

    /// Creates the file `name` in this directory, for writing: nothing may be called that, not even a link.
    pub(crate) fn create(&self, name: &OsStr, permissions: u32) -> Result<File, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&self.file, name, flags, Mode::from_raw_mode(permissions)).map(File::from)
    }

    /// Opens this directory for reading its entries.
    pub(crate) fn entries(&self) -> Result<File, Errno> {
        open(&self.file, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY, ResolveFlags::empty())
    }

    pub(crate) fn id(&self) -> Id {
        Id::of(&self.meta)
    }

    pub(crate) fn kind(&self) -> Kind {
        kind(&self.meta)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// This directory and every one above it, up to the root of everything.
    pub(crate) fn upwards(&self) -> Result<Vec<Id>, Errno> {
        let mut chain = vec![self.id()];
        let mut here = self.directory(Path::new(".."), Reach::Any)?;
        while chain.last() != Some(&here.id()) {
            if chain.len() == MAX_DEPTH {
                return Err(Errno::LOOP);
            }
            chain.push(here.id());
            here = here.directory(Path::new(".."), Reach::Any)?;
        }
        Ok(chain)
    }

    fn hold(file: File) -> Result<Self, Errno> {
        let meta = file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(Self { file, meta })
    }
}

impl Id {
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }

    /// What has that inode on the same device.
    pub(crate) fn beside(self, inode: u64) -> Self {
        Self { inode, ..self }
    }

    /// One of `lanes` numbers below it, the same for the same file.
    pub(crate) fn lane(self, lanes: usize) -> usize {
        (self.inode % lanes as u64) as usize
    }
}

pub(crate) fn kind(meta: &Metadata) -> Kind {
    let kind = meta.file_type();
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Directory
    } else if kind.is_symlink() {
        Kind::Symlink
    } else if kind.is_fifo() {
        Kind::Pipe
    } else if kind.is_socket() {
        Kind::Socket
    } else {
        Kind::Device
    }
}

/// Whether this kernel resolves beneath a handle.
pub(crate) fn can_resolve_beneath(root: &Handle) -> io::Result<()> {
    root.directory(Path::new("."), Reach::Beneath).map(drop).map_err(io::Error::from)
}

fn open(at: impl std::os::fd::AsFd, path: &Path, flags: OFlags, resolve: ResolveFlags) -> Result<File, Errno> {
    let mut attempt = 0;
    loop {
        match openat2(at.as_fd(), path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if attempt < ATTEMPTS => {
                attempt += 1;
                std::thread::yield_now();
            }
            opened => return opened.map(File::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upwards_ends_at_the_root_of_everything() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let chain = Handle::root(&deep).unwrap().upwards().unwrap();
        assert_eq!(chain.last(), Some(&Handle::root(Path::new("/")).unwrap().id()));
        assert_eq!(chain[1], Handle::root(&dir.path().join("a")).unwrap().id());
        assert_eq!(chain.len(), deep.canonicalize().unwrap().components().count());
    }

    #[test]
    fn a_link_is_not_opened_for_reading() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        std::os::unix::fs::symlink("file", dir.path().join("link")).unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        assert!(handle.reader(OsStr::new("file")).is_ok());
        assert_eq!(handle.reader(OsStr::new("link")).unwrap_err(), Errno::LOOP);
    }

    #[test]
    fn a_pipe_is_opened_for_reading_without_waiting_for_its_writer() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        let (opened, opens) = std::sync::mpsc::channel();
        std::thread::spawn(move || opened.send(handle.reader(OsStr::new("pipe")).map(drop)));
        assert_eq!(opens.recv_timeout(std::time::Duration::from_secs(10)), Ok(Ok(())));
    }

    #[test]
    fn a_file_is_created_where_nothing_is_and_for_this_process_alone() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("taken"), "old").unwrap();
        std::os::unix::fs::symlink("elsewhere", dir.path().join("dangling")).unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        let create = |name: &str| handle.create(OsStr::new(name), 0o600);
        assert_eq!(create("taken").unwrap_err(), Errno::EXIST);
        assert_eq!(create("dangling").unwrap_err(), Errno::EXIST);
        assert!(!dir.path().join("elsewhere").exists());
        let flags = rustix::io::fcntl_getfd(create("free").unwrap()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }

    #[test]
    fn a_subdirectory_is_beneath_and_no_link_leads_to_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("link")).unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        let step = |name: &str| handle.subdirectory(OsStr::new(name)).map(drop);
        assert_eq!((step("a"), step("a/b")), (Ok(()), Ok(())));
        assert_eq!((step("link"), step("link/b")), (Err(Errno::NOTDIR), Err(Errno::LOOP)));
        assert_eq!((step(".."), step("a/../..")), (Err(Errno::XDEV), Err(Errno::XDEV)));
    }
}
