//! What this user's helpers have put where, a file each, and what they are about to put. It is written where there is room: first
//! into the machine's memory file system, which no confined command sees, and where somebody else has filled that, to
//! other places that none can write.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use super::super::anchored::Anchored;
use super::{COMMON_DIR, Id, Locked};

/// How long after it was announced something was put, at most, in seconds.
const SOON: i64 = 60;

/// The directories of them.
pub(super) struct Records(Vec<PathBuf>);

/// Something that is about to be put. As long as this is there, its file is locked; what is left of one whose file nobody
/// has locked is cleared away.
pub(super) struct Due {
    record: PathBuf,
    _file: File,
}

impl Records {
    pub(super) fn of_this_user() -> Self {
        let user = geteuid().as_raw();
        let places = ["/dev/shm".to_owned(), format!("/run/user/{user}"), "/var/tmp".to_owned(), "/tmp".to_owned()];
        Self(places.map(|place| Path::new(&place).join(format!("tether-{user}"))).to_vec())
    }

    /// Says that something is about to be put at a path. It comes before whatever is done there.
    pub(super) fn announce(&self, path: &Path) -> io::Result<Due> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let name = format!("{}-{now}.due", std::process::id());
        let (record, file) = self.write(&name, path)?;
        Ok(Due { record, _file: file })
    }

    pub(super) fn add(&self, id: Id, path: &Path) -> io::Result<()> {
        self.write(&name(id), path).map(drop)
    }

    pub(super) fn has(&self, id: Id) -> bool {
        self.own().any(|home| home.join(name(id)).symlink_metadata().is_ok())
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
        let mut left = Vec::new();
        for record in
            self.own().filter_map(|home| fs::read_dir(home).ok()).flatten().flatten().map(|entry| entry.path())
        {
            let (path, id) = (said(&record), parse(&record));
            let is_due = record.extension() == Some(OsStr::new("due"));
            match (path, id) {
                (Some(path), _) if !roots.iter().any(|root| path.starts_with(root)) => {}
                (Some(path), Some(id)) => left.push((path, id)),
                (path, None) if is_due => settle(self, &record, path.as_deref())?,
                _ => {}
            }
        }
        left.sort_by(|one, other| other.cmp(one));
        left.into_iter().try_for_each(|(path, id)| match Locked::at_once(&path) {
            Ok(Some(locked)) if locked.id == id => self.take(locked),
            Ok(_) => self.forget(id),
            // It is kept, or cannot be got at now.
            Err(_) => Ok(()),
        })
    }

    fn forget(&self, id: Id) -> io::Result<()> {
        self.own().try_for_each(|home| gone(fs::remove_file(home.join(name(id)))))
    }

    /// Those that are there. What another user says is nobody's record.
    fn own(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter(|home| is_own(home))
    }

    /// Writes to the first place that takes it, and locks it there.
    fn write(&self, name: &str, path: &Path) -> io::Result<(PathBuf, File)> {
        let mut refused = Vec::new();
        for home in &self.0 {
            match write(home, name, path) {
                Ok(file) => return Ok((home.join(name), file)),
                Err(error) => refused.push(format!("{}: {error}", home.display())),
            }
        }
        let why = "what is put in place of missing protected paths cannot be written down anywhere";
        Err(io::Error::other(format!("{why}: {}", refused.join("; "))))
    }
}

impl Due {
    /// What it is called until it is whole.
    pub(super) fn unfinished(&self, path: &Path) -> PathBuf {
        unfinished(&self.record, path)
    }

    /// Nothing is left to be cleared away.
    pub(super) fn done(self) -> io::Result<()> {
        gone(fs::remove_file(&self.record))
    }
}

fn unfinished(record: &Path, path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tether-");
    name.push(record.file_stem().unwrap_or_default());
    path.with_file_name(name)
}

/// Clears away what somebody announced who is gone; nothing, if that was no more than begun.
fn settle(records: &Records, record: &Path, path: Option<&Path>) -> io::Result<()> {
    let Ok(file) = File::open(record) else { return Ok(()) };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let announced = file.metadata()?;
    // It may have been done in the meantime.
    if announced.nlink() == 0 {
        return Ok(());
    }
    let Some(path) = path else { return gone(fs::remove_file(record)) };
    if let Ok(anchored) = Anchored::at(&unfinished(record, path))
        && let Ok(found) = anchored.path().symlink_metadata()
        && found.is_file()
        && found.len() <= COMMON_DIR.len() as u64
    {
        gone(fs::remove_file(anchored.path()))?;
    }
    match Locked::at_once(path) {
        Ok(Some(locked)) if is_of(&announced, &locked.file.metadata()?) => records.take(locked)?,
        Ok(_) => {}
        // Another time.
        Err(_) => return Ok(()),
    }
    gone(fs::remove_file(record))
}

/// Whether something was made as it was announced: by this user, and then.
fn is_of(announced: &Metadata, found: &Metadata) -> bool {
    let after = found.ctime() - announced.mtime();
    found.uid() == announced.uid() && (0..=SOON).contains(&after)
}

fn write(home: &Path, name: &str, path: &Path) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(home) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if !is_own(home) {
        return Err(io::Error::other("it is no directory of this user's alone"));
    }
    let record = home.join(name);
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let mut file = options.open(&record)?;
    let mut written = || {
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        if file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("it was taken for one that was cut off"));
        }
        file.write_all(path.as_os_str().as_bytes())
    };
    if let Err(error) = written() {
        // What is cut off says nothing.
        let _ = fs::remove_file(&record);
        return Err(error);
    }
    Ok(file)
}

fn is_own(home: &Path) -> bool {
    let found = home.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn name((device, inode): Id) -> String {
    format!("{device:x}-{inode:x}.put")
}

/// What a record is about. What cannot be read was cut off with the helper that wrote it, or is another's by now.
fn parse(record: &Path) -> Option<Id> {
    let name = record.file_name()?.to_str()?.strip_suffix(".put")?.split_once('-')?;
    Some((u64::from_str_radix(name.0, 16).ok()?, u64::from_str_radix(name.1, 16).ok()?))
}

fn said(record: &Path) -> Option<PathBuf> {
    let is_file = record.symlink_metadata().ok()?.is_file();
    let path = PathBuf::from(OsString::from_vec(fs::read(record).ok().filter(|_| is_file)?));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
impl Records {
    pub(super) fn in_places(places: &[&Path]) -> Self {
        Self(places.iter().map(|place| place.to_path_buf()).collect())
    }

    /// How many records there are of what is below a path.
    pub(super) fn about(&self, root: &Path) -> usize {
        let records = self.0.iter().filter_map(|home| fs::read_dir(home).ok()).flatten().flatten();
        records.filter(|record| said(&record.path()).is_some_and(|path| path.starts_with(root))).count()
    }
}

#[cfg(test)]
impl Due {
    pub(super) fn set_modified(&self, time: SystemTime) {
        self._file.set_modified(time).unwrap();
    }
}
