//! Looking: reading, listing, asking what something is. Links are followed, here rather than by the kernel, so that
//! each directory on the way is checked before anything in it is opened.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use fs::{Entry, FileContent, FsError, Kind, Listing, MAX_FILE_BYTES, MAX_LIST_ENTRIES, Stat};
use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use sandbox::Sight;

use crate::asked::{Asked, split};
use crate::fence::Ground;
use crate::guard::Guard;
use crate::handle::{Handle, Id, Reach, kind};

/// How many links a last name may lead through.
const MAX_LINKS: usize = 40;

/// What a path leads to.
struct Found {
    thing: Handle,
    /// Its directory and name. None for a directory that was reached without one, such as `..`.
    within: Option<(Handle, OsString)>,
}

/// A name in a directory, what it is, and its inode.
pub(crate) type Named = (OsString, Kind, u64);

impl Ground {
    pub(crate) fn read(&self, asked: &Asked, sight: &Sight, max_bytes: u64) -> Result<FileContent, FsError> {
        let found = self.find(asked, sight)?;
        let kind = found.thing.kind();
        let (Kind::File, Some((directory, name))) = (kind, &found.within) else {
            return Err(match kind {
                Kind::Directory => FsError::IsADirectory(asked.shown.clone()),
                _ => FsError::NotAFile { path: asked.shown.clone(), kind },
            });
        };
        let bytes = content(asked, directory, name, &found.thing, max_bytes.min(MAX_FILE_BYTES))?;
        Ok(FileContent { path: asked.shown.clone(), bytes })
    }

    pub(crate) fn stat(&self, asked: &Asked, sight: &Sight) -> Result<Stat, FsError> {
        let thing = self.find(asked, sight)?.thing;
        let modified = thing.meta.modified().map_err(|error| asked.failed(error))?;
        Ok(Stat { path: asked.shown.clone(), kind: thing.kind(), size: thing.meta.len(), modified })
    }

    pub(crate) fn list(&self, asked: &Asked, sight: &Sight, max: usize) -> Result<Listing, FsError> {
        let directory = self.directory(asked, sight)?;
        let (found, truncated) = entries(asked, &directory, max.min(MAX_LIST_ENTRIES))?;
        let entry = |(name, kind, _): (OsString, _, _)| Entry { name: name.to_string_lossy().into_owned(), kind };
        let mut entries = found.into_iter().map(entry).collect::<Vec<_>>();
        entries.sort();
        Ok(Listing { path: asked.shown.clone(), entries, truncated })
    }

    /// The directory that a path leads to.
    pub(crate) fn directory(&self, asked: &Asked, sight: &Sight) -> Result<Handle, FsError> {
        let thing = self.find(asked, sight)?.thing;
        if thing.kind() == Kind::Directory { Ok(thing) } else { Err(FsError::NotADirectory(asked.shown.clone())) }
    }

    fn find(&self, asked: &Asked, sight: &Sight) -> Result<Found, FsError> {
        let failed = |error: Errno| match error {
            Errno::LOOP if sight.is_confined() => asked.denied(sight.mode(), fs::Why::Symlink),
            error => asked.failed(error),
        };
        let guard = Guard::reading(sight, self).map_err(failed)?;
        let reach = if sight.is_confined() { Reach::Named } else { Reach::Any };
        let mut path: PathBuf = asked.full.strip_prefix(self.workspace.root()).unwrap_or(&asked.full).to_owned();
        let mut from = None;
        for _ in 0..MAX_LINKS {
            let start = from.as_ref().unwrap_or(&self.root);
            let (parent, name) = split(&path);
            let directory = start.directory(parent, reach).map_err(failed)?;
            guard.look_into(asked, &directory)?;
            let Some(name) = name else {
                return Ok(Found { thing: directory, within: None });
            };
            guard.look_at(asked, &directory, name)?;
            let thing = directory.entry(name).map_err(failed)?;
            guard.read(asked, &thing)?;
            match thing.kind() {
                Kind::Symlink => {
                    let target = rustix::fs::readlinkat(directory.file(), name, Vec::new()).map_err(failed)?;
                    path = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    from = Some(directory);
                }
                kind => {
                    if kind == Kind::Directory {
                        guard.look_into(asked, &thing)?;
                    }
                    return Ok(Found { thing, within: Some((directory, name.to_owned())) });
                }
            }
        }
        Err(asked.failed(Errno::LOOP))
    }
}

/// What a directory holds, as the machine orders it: names, kinds, and which inode each is said to be. And whether there
/// is more.
pub(crate) fn entries(asked: &Asked, directory: &Handle, max: usize) -> Result<(Vec<Named>, bool), FsError> {
    let failed = |error: Errno| asked.failed(error);
    let mut entries = Vec::new();
    for entry in Dir::read_from(directory.entries().map_err(failed)?).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if entries.len() == max {
            return Ok((entries, true));
        }
        let name = OsString::from_vec(name.to_bytes().to_vec());
        let kind = match entry.file_type() {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            FileType::Unknown => match directory.entry(&name) {
                Ok(thing) => thing.kind(),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(failed(error)),
            },
        };
        entries.push((name, kind, entry.ino()));
    }
    Ok((entries, false))
}

/// The content of a regular file that was found as `name` in `directory` and is opened only if it still is that one.
pub(crate) fn content(
    asked: &Asked,
    directory: &Handle,
    name: &OsStr,
    found: &Handle,
    limit: u64,
) -> Result<Vec<u8>, FsError> {
    let mut file = directory.reader(name).map_err(|error| match error {
        // It was a regular file a moment ago: now it is gone, a link, or a socket.
        Errno::NOENT | Errno::LOOP | Errno::NXIO => FsError::Changed(asked.shown.clone()),
        error => asked.failed(error),
    })?;
    let meta = file.metadata().map_err(|error| asked.failed(error))?;
    if Id::of(&meta) != found.id() || kind(&meta) != Kind::File {
        return Err(FsError::Changed(asked.shown.clone()));
    }
    let too_large = |size| FsError::TooLarge { path: asked.shown.clone(), size, limit };
    if meta.len() > limit {
        return Err(too_large(meta.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.by_ref().take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| asked.failed(error))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use sandbox::Operation;

    use super::*;

    #[test]
    fn what_was_found_is_what_is_read_or_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let asked = Asked::new(Operation::Read, dir.path(), "file").unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        std::fs::write(dir.path().join("file"), "mine").unwrap();
        let found = handle.entry(OsStr::new("file")).unwrap();
        let read = || content(&asked, &handle, OsStr::new("file"), &found, 10);
        assert_eq!(read().unwrap(), b"mine");
        std::fs::write(dir.path().join("other"), "theirs").unwrap();
        std::fs::rename(dir.path().join("other"), dir.path().join("file")).unwrap();
        assert!(matches!(read(), Err(FsError::Changed(_))));
        std::fs::remove_file(dir.path().join("file")).unwrap();
        assert!(matches!(read(), Err(FsError::Changed(_))));
    }
}
