//! Writing: the directory is resolved to a handle, and from then on everything happens to names in that handle.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use fs::{Change, FsError, Kind, MAX_FILE_BYTES, MAX_PREVIOUS_BYTES, Previous, Why, WriteOutcome};
use rustix::fs::{
    Access, AtFlags, Gid, Mode, RenameFlags, Uid, accessat, fchmod, fchown, mkdirat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use sandbox::Boundary;

use crate::asked::{Asked, is_below, lexical, split};
use crate::fence::{Ground, Waiting};
use crate::guard::Guard;
use crate::handle::{Handle, Id, Reach};
use crate::read::content;

/// How many links a last name may lead through, where they are followed.
const MAX_LINKS: usize = 40;

/// How often a free temporary name is looked for.
const ATTEMPTS: usize = 16;

/// Where a file's new content comes from.
pub(crate) enum Make {
    /// Given.
    Content(Vec<u8>),
    /// Made of what is there.
    Change(Change),
}

/// One write, under one boundary.
struct Writing<'a> {
    ground: &'a Ground,
    asked: &'a Asked,
    boundary: &'a Boundary,
    reach: Reach,
}

/// A file's place: the directory, held, and how it was reached.
struct Place<'a> {
    start: &'a Handle,
    parent: &'a Path,
    directory: Handle,
    name: &'a OsStr,
}

impl Ground {
    pub(crate) fn write(
        &self,
        asked: &Asked,
        boundary: &Boundary,
        waiting: &Waiting,
        make: Make,
    ) -> Result<WriteOutcome, FsError> {
        if boundary.writable_roots().is_empty() {
            return Err(asked.denied(boundary.mode(), Why::ReadOnly));
        }
        let reach = if boundary.is_confined() { Reach::Beneath } else { Reach::Any };
        Writing { ground: self, asked, boundary, reach }.run(waiting, make)
    }
}

impl Writing<'_> {
    fn run(&self, waiting: &Waiting, make: Make) -> Result<WriteOutcome, FsError> {
        let (root, mut path) = self.root()?;
        if self.asked.names_directory {
            return Err(self.asked.invalid("it names a directory, not a file"));
        }
        if let Make::Content(content) = &make {
            self.fits(content)?;
        }
        let mut made = Made::default();
        let mut linked = None;
        for _ in 0..MAX_LINKS {
            let start = linked.as_ref().unwrap_or(root);
            let (parent, Some(name)) = split(&path) else {
                return Err(FsError::IsADirectory(self.asked.shown.clone()));
            };
            let directory = match (start.directory(parent, self.reach), &make) {
                (Err(Errno::NOENT), Make::Content(_)) => self.create(start, root, parent, &mut made)?,
                (directory, _) => directory.map_err(|error| self.failed(error))?,
            };
            let turn = self.ground.turn(directory.id());
            let guard = self.allows(&directory, root, name)?;
            let found = match directory.entry(name) {
                Ok(found) => Some(found),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(self.failed(error)),
            };
            match found.as_ref().map(Handle::kind) {
                Some(Kind::Symlink) if !self.boundary.is_confined() => {
                    let target = rustix::fs::readlinkat(directory.file(), name, Vec::new());
                    let target = target.map_err(|error| self.failed(error))?;
                    drop(turn);
                    path = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    linked = Some(directory);
                }
                _ => {
                    let place = Place { start, parent, directory, name };
                    if let Some(found) = &found {
                        guard.thing(self.asked, found)?;
                        self.replaceable(&place, found)?;
                    }
                    let outcome = self.put(&place, root, found.as_ref(), waiting, make)?;
                    made.keep();
                    return Ok(outcome);
                }
            }
        }
        Err(self.failed(Errno::LOOP))
    }

    /// The handle that the path is resolved from, and the rest of the path.
    fn root(&self) -> Result<(&Handle, PathBuf), FsError> {
        let (full, shown) = (&self.asked.full, &self.asked.shown);
        let below = |top: &Path| full.strip_prefix(top).or_else(|_| shown.strip_prefix(top)).ok().map(Path::to_owned);
        if !self.boundary.is_confined() {
            let path = full.strip_prefix(self.boundary.root()).unwrap_or(full).to_owned();
            return Ok((&self.ground.root, path));
        }
        let writable = self.ground.writable.iter().filter(|root| self.boundary.writable_roots().contains(&root.path));
        for root in writable {
            if let Some(path) = below(&root.path).or_else(|| below(&root.spelled)) {
                Guard::text(self.boundary, self.asked, &root.path.join(&path))?;
                return Ok((&root.handle, path));
            }
        }
        let hidden = self.boundary.unreadable_roots().iter().any(|home| is_below(&lexical(full), home));
        Err(self.denied(if hidden { Why::Home } else { Why::Outside }))
    }

    /// Creates the directories that are missing on the way to `parent`, one by one and each only where it may be.
    fn create(&self, start: &Handle, root: &Handle, parent: &Path, made: &mut Made) -> Result<Handle, FsError> {
        let (mut there, mut missing) = (parent, Vec::new());
        let mut here = loop {
            let (up, Some(name)) = split(there) else { return Err(self.failed(Errno::NOENT)) };
            missing.push(name);
            there = up;
            match start.directory(there, self.reach) {
                Err(Errno::NOENT) => {}
                found => break found.map_err(|error| self.failed(error))?,
            }
        };
        for name in missing.into_iter().rev() {
            self.allows(&here, root, name)?;
            let new = match mkdirat(here.file(), name, Mode::from_raw_mode(0o777)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(self.failed(error)),
            };
            let next = here.subdirectory(name);
            if new {
                made.0.push((here, name.to_owned()));
            }
            here = next.map_err(|error| self.failed(error))?;
        }
        Ok(here)
    }

    fn put(
        &self,
        place: &Place<'_>,
        root: &Handle,
        found: Option<&Handle>,
        waiting: &Waiting,
        make: Make,
    ) -> Result<WriteOutcome, FsError> {
        let expect = match &make {
            Make::Content(_) => None,
            Make::Change(_) => found.map(|found| Version::of(&found.meta)),
        };
        let (bytes, previous) = self.contents(place, found, make)?;
        // Making the new content takes time, and nothing is put where nothing may be any more.
        self.still(place, root, expect)?;
        let new = Temporary::holding(&place.directory, &bytes, found.map(|found| &found.meta));
        let new = new.map_err(|error| self.asked.failed(error))?;
        if waiting.left() {
            return Err(FsError::Closing);
        }
        self.still(place, root, expect)?;
        match found {
            Some(_) => new.replace(place.name).map_err(|error| self.failed(error))?,
            None => new.appear(place.name).map_err(|error| match error {
                Errno::EXIST => FsError::Changed(self.asked.shown.clone()),
                error => self.failed(error),
            })?,
        }
        let path = self.written(place);
        Ok(WriteOutcome { path, previous, bytes: bytes.len() as u64 })
    }

    /// What was asked for, unless a `..` in it led elsewhere than its text says.
    fn written(&self, place: &Place<'_>) -> PathBuf {
        let by_text = self.asked.full.components().all(|part| part != Component::ParentDir);
        let led = || self.ground.leads_to(self.asked).ok();
        let led = if by_text { None } else { led() };
        led.filter(|led| led.file_name() == Some(place.name)).unwrap_or_else(|| self.asked.shown.clone())
    }

    /// Refuses to replace anything but an ordinary file that has this one name.
    fn replaceable(&self, place: &Place<'_>, found: &Handle) -> Result<(), FsError> {
        match found.kind() {
            Kind::File => {}
            Kind::Directory => return Err(FsError::IsADirectory(self.asked.shown.clone())),
            Kind::Symlink => return Err(self.denied(Why::Symlink)),
            kind @ (Kind::Pipe | Kind::Socket | Kind::Device) => {
                return Err(FsError::NotAFile { path: self.asked.shown.clone(), kind });
            }
        }
        if self.boundary.is_confined() && found.meta.nlink() > 1 {
            return Err(self.denied(Why::HardLink));
        }
        // A rename needs no right to write the file that it replaces; whoever took that right away meant it.
        let writable = accessat(place.directory.file(), place.name, Access::WRITE_OK, AtFlags::EACCESS);
        writable.map_err(|error| self.failed(error))
    }

    fn contents(&self, place: &Place<'_>, found: Option<&Handle>, make: Make) -> Result<(Vec<u8>, Previous), FsError> {
        let read = |found, limit| content(self.asked, &place.directory, place.name, found, limit);
        match (make, found) {
            (Make::Content(bytes), None) => Ok((bytes, Previous::Absent)),
            (Make::Content(bytes), Some(found)) => match read(found, MAX_PREVIOUS_BYTES) {
                Ok(previous) => Ok((bytes, Previous::Content(previous))),
                Err(FsError::TooLarge { .. } | FsError::Io { .. }) => Ok((bytes, Previous::Unknown)),
                Err(error) => Err(error),
            },
            (Make::Change(_), None) => Err(FsError::NotFound(self.asked.shown.clone())),
            (Make::Change(change), Some(found)) => {
                let text = String::from_utf8(read(found, MAX_FILE_BYTES)?);
                let text = text.map_err(|_| FsError::NotUtf8(self.asked.shown.clone()))?;
                let bytes = change(&text).map_err(FsError::Refused)?.into_bytes();
                self.fits(&bytes)?;
                let small = text.len() as u64 <= MAX_PREVIOUS_BYTES;
                Ok((bytes, if small { Previous::Content(text.into_bytes()) } else { Previous::Unknown }))
            }
        }
    }

    /// Looks again, right before the rename: the way still leads to the same directory, which is still where it may be
    /// written, and the file is still the one that was read.
    fn still(&self, place: &Place<'_>, root: &Handle, expect: Option<Version>) -> Result<(), FsError> {
        let changed = || FsError::Changed(self.asked.shown.clone());
        let again = place.start.directory(place.parent, self.reach).map_err(|error| self.failed(error))?;
        if again.id() != place.directory.id() {
            return Err(changed());
        }
        self.allows(&place.directory, root, place.name)?;
        let Some(expect) = expect else { return Ok(()) };
        let now = place.directory.entry(place.name).map_err(|_| changed())?;
        if Version::of(&now.meta) != expect { Err(changed()) } else { Ok(()) }
    }

    /// Refuses a name in a directory where it may not be written. The guard is a new one each time: a place that was
    /// missing before may be there now.
    fn allows(&self, directory: &Handle, root: &Handle, name: &OsStr) -> Result<Guard<'_>, FsError> {
        let guard = Guard::writing(self.boundary, self.ground).map_err(|error| self.failed(error))?;
        if self.boundary.is_confined() {
            guard.write_into(self.asked, directory, root)?;
            guard.name(self.asked, directory, name)?;
        }
        Ok(guard)
    }

    fn fits(&self, content: &[u8]) -> Result<(), FsError> {
        let (path, size) = (self.asked.shown.clone(), content.len() as u64);
        if size > MAX_FILE_BYTES { Err(FsError::TooLarge { path, size, limit: MAX_FILE_BYTES }) } else { Ok(()) }
    }

    fn denied(&self, why: Why) -> FsError {
        self.asked.denied(self.boundary.mode(), why)
    }

    fn failed(&self, error: Errno) -> FsError {
        match error {
            Errno::XDEV if self.boundary.is_confined() => self.denied(Why::Outside),
            Errno::LOOP if self.boundary.is_confined() => self.denied(Why::Symlink),
            error => self.asked.failed(error),
        }
    }
}

/// What tells that a file was changed or replaced.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Version {
    id: Id,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Version {
    fn of(meta: &Metadata) -> Self {
        Self {
            id: Id::of(meta),
            size: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Directories that were created for a file. They go again if the file does not come.
#[derive(Default)]
struct Made(Vec<(Handle, OsString)>);

impl Made {
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (directory, name) in self.0.drain(..).rev() {
            // One that is not empty has got another's file meanwhile, and stays.
            let _kept = unlinkat(directory.file(), &name, AtFlags::REMOVEDIR);
        }
    }
}

/// A file under a name of its own, complete, that is about to get its real one. It goes if it does not.
struct Temporary<'a> {
    directory: &'a Handle,
    name: OsString,
}

impl<'a> Temporary<'a> {
    fn holding(directory: &'a Handle, content: &[u8], replaces: Option<&Metadata>) -> Result<Self, std::io::Error> {
        let mode = if replaces.is_some() { 0o600 } else { 0o666 };
        let mut attempt = 0;
        let (new, mut file) = loop {
            let name = OsString::from(format!(".tether-{:016x}.tmp", RandomState::new().build_hasher().finish()));
            match directory.create(&name, mode) {
                Err(Errno::EXIST) if attempt < ATTEMPTS => attempt += 1,
                created => break (Self { directory, name }, created?),
            }
        };
        file.write_all(content)?;
        if let Some(old) = replaces {
            let mine = file.metadata()?;
            if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
                // Only root may give a file away; anyone else's becomes the writer's, as with any editor.
                let _own = fchown(&file, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
            }
            fchmod(&file, Mode::from_raw_mode(old.mode() & 0o777))?;
        }
        Ok(new)
    }

    /// Takes the place of what is called `name`.
    fn replace(self, name: &OsStr) -> Result<(), Errno> {
        renameat(self.directory.file(), &self.name, self.directory.file(), name)
    }

    /// Becomes `name`, which must be free.
    fn appear(self, name: &OsStr) -> Result<(), Errno> {
        let at = self.directory.file();
        match renameat_with(at, &self.name, at, name, RenameFlags::NOREPLACE) {
            // Not every file system can promise that; one that cannot is looked at first.
            Err(Errno::INVAL) => match self.directory.entry(name) {
                Err(Errno::NOENT) => self.replace(name),
                Ok(_) => Err(Errno::EXIST),
                Err(error) => Err(error),
            },
            renamed => renamed,
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        // After a rename there is nothing of that name any more.
        let _gone = unlinkat(self.directory.file(), &self.name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_takes_nobody_elses_place() {
        let dir = tempfile::tempdir().unwrap();
        let handle = Handle::root(dir.path()).unwrap();
        let appear = |name: &str| Temporary::holding(&handle, b"new", None).unwrap().appear(OsStr::new(name));
        std::fs::write(dir.path().join("taken"), "old").unwrap();
        assert_eq!(appear("taken"), Err(Errno::EXIST));
        assert_eq!(appear("free"), Ok(()));
        assert_eq!(std::fs::read_to_string(dir.path().join("taken")).unwrap(), "old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
    }
}
