use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;
use sandbox::{Grant, Mode};

use crate::{Directory, FsError};

/// The largest file that is read, edited or written, in bytes, unless a caller wants less.
pub const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// The most entries of one directory that are listed.
pub const MAX_LIST_ENTRIES: usize = 10_000;

/// The longest path, in bytes.
pub const MAX_PATH_BYTES: usize = 4095;

/// The largest replaced content that a [`WriteOutcome`] carries, in bytes.
pub const MAX_PREVIOUS_BYTES: u64 = 1024 * 1024;

/// The files of one agent, as far as its session's sandbox mode lets it reach them. Looked up in the agent's realm.
///
/// Paths are UTF-8 text from a model: absolute, or relative to [`FileSystem::root`]. Every operation asks for the mode
/// anew. A future that is dropped before it settles may have changed a file, but never leaves half of a content.
#[async_trait]
pub trait FileSystem: Send + Sync {
    /// The directory that relative paths are relative to: the session's, absolute and canonical.
    fn root(&self) -> &Path;

    /// The mode in force now, without any grant. A provider that does not confine says [`Mode::DangerFullAccess`].
    fn mode(&self) -> Mode;

    /// The whole content of a regular file of at most `max_bytes` bytes. Links are followed.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] for what is Tether's own and for views into running processes, [`FsError::TooLarge`],
    /// [`FsError::NotAFile`] for anything but a regular file (it never waits for a pipe), and whatever the machine says.
    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileContent, FsError>;

    /// Creates or replaces a regular file, whole or not at all, and creates the directories that are missing on the
    /// way. A replaced file keeps its permissions. A `grant` widens the mode for this call alone.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] where the mode does not let it, [`FsError::TooLarge`] above [`MAX_FILE_BYTES`],
    /// [`FsError::NotAFile`], [`FsError::IsADirectory`], [`FsError::Full`], [`FsError::Changed`] where somebody else
    /// created the same file meanwhile, and whatever the machine says.
    async fn write(&self, path: &str, content: Vec<u8>, grant: Option<&Grant>) -> Result<WriteOutcome, FsError>;

    /// Replaces the text of a file by what `change` makes of it, whole or not at all, provided that the file did not
    /// change in between. `change` runs on a thread for blocking work; what it refuses is [`FsError::Refused`].
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::write`], and [`FsError::NotFound`], [`FsError::NotUtf8`], [`FsError::Refused`].
    async fn update(&self, path: &str, change: Change, grant: Option<&Grant>) -> Result<WriteOutcome, FsError>;

    /// The entries of a directory in the order of their names, at most `max_entries` (and [`MAX_LIST_ENTRIES`]) of them.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] as for [`FileSystem::read`], [`FsError::NotADirectory`], and whatever the machine says.
    async fn list(&self, path: &str, max_entries: usize) -> Result<Listing, FsError>;

    /// A directory, held open, from which everything below it can be looked through. Links on the way to it are followed.
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::list`].
    async fn directory(&self, path: &str) -> Result<Box<dyn Directory>, FsError>;

    /// What a path leads to. Links are followed.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] as for [`FileSystem::read`], [`FsError::NotFound`], and whatever the machine says.
    async fn stat(&self, path: &str) -> Result<Stat, FsError>;

    /// Where a path leads at this moment, absolute and with links followed as far as it exists: for a person who decides
    /// on it, never for opening. A link that leads to nothing yet is followed too, as a write would.
    ///
    /// # Errors
    ///
    /// [`FsError::InvalidPath`], [`FsError::Changed`] where the root is no longer where it was, and whatever keeps it
    /// from being told: nobody is then to be asked about it.
    async fn leads_to(&self, path: &str) -> Result<PathBuf, FsError> {
        Ok(self.root().join(path))
    }

    /// The whole text of a regular file. See [`FileSystem::read`].
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::read`], and [`FsError::NotUtf8`].
    async fn read_text(&self, path: &str, max_bytes: u64) -> Result<String, FsError> {
        self.read(path, max_bytes).await?.into_text()
    }
}

/// Makes a file's new text from its text, or says in a model's words why it does not.
pub type Change = Box<dyn FnOnce(&str) -> Result<String, String> + Send>;

/// A file's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileContent {
    /// What was asked for, absolute.
    pub path: PathBuf,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// What was asked for, absolute.
    pub path: PathBuf,
    /// What was there before.
    pub previous: Previous,
    /// The size of what is there now.
    pub bytes: u64,
}

/// What a write found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Previous {
    /// Nothing: the file is new.
    Absent,
    /// This content.
    Content(Vec<u8>),
    /// A content larger than [`MAX_PREVIOUS_BYTES`], or one that may be written but not read.
    Unknown,
}

/// A directory's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What was asked for, absolute.
    pub path: PathBuf,
    /// In the order of their names.
    pub entries: Vec<Entry>,
    /// Whether there are more than were asked for. Which ones are missing is up to the machine.
    pub truncated: bool,
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name. Bytes that are not UTF-8 are replaced, so it may not lead back to the entry.
    pub name: String,
    /// What it is. A link is not followed.
    pub kind: Kind,
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What was asked for, absolute.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes; of a directory, whatever the machine says.
    pub size: u64,
    /// When its content last changed.
    pub modified: SystemTime,
}

/// What kind of thing a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A block or character device.
    Device,
}

impl FileContent {
    /// As text.
    ///
    /// # Errors
    ///
    /// [`FsError::NotUtf8`].
    pub fn into_text(self) -> Result<String, FsError> {
        let path = self.path;
        String::from_utf8(self.bytes).map_err(|_| FsError::NotUtf8(path))
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symbolic link",
            Self::Pipe => "named pipe",
            Self::Socket => "socket",
            Self::Device => "device",
        })
    }
}
