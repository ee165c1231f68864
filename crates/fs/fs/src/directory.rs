use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::{FsError, Kind};

/// A directory of a [`FileSystem`](crate::FileSystem), held open: for looking through what is below it without coming
/// back to a path. Steps go down by one name each and never through a link, so they stay below where they began.
///
/// Every operation asks for the mode anew, and blocks: they are for threads that may.
pub trait Directory: Send {
    /// What was asked for, absolute, and the names that were stepped down by.
    fn path(&self) -> &Path;

    /// Its entries, in the order of their names and at most so many. What may not be read is left out where its name or its
    /// identity in the directory tells; what is a way to it under another name is refused when it is opened.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] where the directory may not be looked into any more, and whatever the machine says.
    fn entries(&self, max_entries: usize) -> Result<Names, FsError>;

    /// The directory of that name in it.
    ///
    /// # Errors
    ///
    /// [`FsError::Denied`] as for [`FileSystem::read`](crate::FileSystem::read), [`FsError::NotADirectory`], for a link
    /// too, [`FsError::InvalidPath`] for what is not a single name, and whatever the machine says.
    fn directory(&self, name: &OsStr) -> Result<Box<dyn Directory>, FsError>;

    /// The whole content of the regular file of that name in it, of at most `max_bytes` bytes.
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::read`](crate::FileSystem::read), [`FsError::NotAFile`] for a link too, and
    /// [`FsError::InvalidPath`] for what is not a single name.
    fn read(&self, name: &OsStr, max_bytes: u64) -> Result<Vec<u8>, FsError>;
}

/// The names in a directory, as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// In their order, byte by byte, and what each is. A link is not followed.
    pub names: Vec<(OsString, Kind)>,
    /// Whether there are more than were asked for. Which ones are missing is up to the machine.
    pub truncated: bool,
}
