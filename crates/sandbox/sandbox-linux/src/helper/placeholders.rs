//! Names that are put into a writable root so that they can be held, and taken away by the last command that needs them.
//!
//! A mount is undone in every namespace when somebody outside removes what it is on. So a placeholder may not go while another
//! command runs that holds it: one of the same root, of a root inside or around it, or another user's. Each command that
//! holds one, whoever put it there, has a shared lock on the placeholder itself; only who gets the exclusive one takes it
//! away. What is about to be put and what was put is [written down](records), so that a helper that is killed at any moment
//! leaves nothing behind for long; a command for which nothing can be written down is not run.

mod records;

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, Mode, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::process::{geteuid, umask};

use super::anchored::Anchored;
use super::protect::{COMMON_DIR, Kind, Layout, Placeholder};
use super::stage::{SetUp, Stage};
use crate::plan::Plan;
use records::{Due, Records};

/// What is told to have failed where one cannot be put.
pub(crate) const STAGE: &str = "placeholder";
/// A placeholder is locked against others for as long as it takes to remove it.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(1);

/// The placeholders that a running command needs.
pub(crate) struct Held {
    records: Records,
    locked: Vec<Locked>,
}

/// Something at a protected path that others leave there as long as this is not dropped.
struct Locked {
    path: PathBuf,
    file: File,
    id: Id,
}

/// Which file it is.
type Id = (u64, u64);

/// What came of making one.
enum Made {
    /// It is there, locked and written down.
    Locked(Locked),
    /// Nobody can make anything there, so that nothing has to be held.
    Nothing,
    /// Something else is there, or it is gone again.
    Changed,
}

/// Whether what was looked at is still so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Still {
    So,
    Changed,
}

impl Held {
    /// Looks at the protected paths, puts what is missing, and keeps what another command may have put.
    pub(crate) fn put(plan: &Plan) -> Result<(Self, Layout), SetUp> {
        let mut held = Self { records: Records::of_this_user(), locked: Vec::new() };
        let give_up = Instant::now() + PATIENCE;
        let put = loop {
            let put = Layout::of(plan).and_then(|mut layout| Ok((held.hold(&mut layout)?, layout)));
            match put {
                Ok((Still::So, layout)) => break Ok(layout),
                Ok((Still::Changed, _)) if Instant::now() < give_up => std::thread::sleep(PAUSE),
                Ok((Still::Changed, _)) => break Err(SetUp::new(STAGE, "the protected paths change all the time")),
                Err(failed) => break Err(failed),
            }
        };
        match put {
            Ok(layout) => Ok((held, layout)),
            Err(failed) => {
                let _why_it_is_left = held.remove(plan);
                Err(failed)
            }
        }
    }

    fn hold(&mut self, layout: &mut Layout) -> Result<Still, SetUp> {
        let missing: Vec<_> = std::mem::take(&mut layout.placeholders);
        for bind in layout.binds() {
            let is_missing = missing.iter().any(|placeholder| placeholder.path == bind.path);
            let changed = !is_missing && self.keep(&bind.path).stage_at(STAGE, bind.path.display())? == Still::Changed;
            if changed {
                return Ok(Still::Changed);
            }
        }
        for placeholder in &missing {
            let path = &placeholder.path;
            let due = self.records.announce(path).stage(STAGE)?;
            let made = self.records.make(placeholder, &due);
            let made = match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Made::Changed),
                made => made.stage_at(STAGE, path.display()),
            };
            if made.is_ok() {
                due.done().stage(STAGE)?;
            }
            match made? {
                Made::Locked(locked) => self.locked.push(locked),
                Made::Nothing => layout.without(path),
                Made::Changed => return Ok(Still::Changed),
            }
        }
        Ok(Still::So)
    }

    /// Keeps what is there, if it may be a placeholder.
    fn keep(&mut self, path: &Path) -> io::Result<Still> {
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Still::Changed),
            Err(error) => return Err(error),
        };
        let id = id(&found);
        // One in which sessions have their directories goes with the last of them, and may not while this runs.
        let may_go = self.records.has(id) || is_placeholder(path, &found) || scratch::is_place(path);
        if self.locked.iter().any(|locked| locked.id == id) || !may_go {
            return Ok(Still::So);
        }
        match Locked::at(path) {
            Ok(Some(locked)) => self.locked.push(locked),
            Ok(None) => return Ok(Still::Changed),
            // Placeholders can be opened by everybody.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
        Ok(Still::So)
    }

    /// Lets go of everything, and takes away what was put and nobody else needs; also what a helper left that was killed.
    pub(crate) fn remove(mut self, plan: &Plan) -> Result<(), SetUp> {
        let records = self.records;
        // The innermost first.
        self.locked.sort_by(|one, other| other.path.cmp(&one.path));
        let ours = self.locked.into_iter().filter(|locked| records.has(locked.id));
        let taken: Vec<_> = ours.map(|locked| records.take(locked)).collect();
        let roots: Vec<_> = plan.writable().collect();
        let swept = records.sweep(&roots);
        taken.into_iter().chain([swept]).collect::<io::Result<()>>().stage(STAGE)
    }
}

impl Locked {
    /// `None` if it is not there any more once it is locked.
    fn at(path: &Path) -> io::Result<Option<Self>> {
        Self::within(path, PATIENCE)
    }

    /// The same, without waiting for anybody.
    fn at_once(path: &Path) -> io::Result<Option<Self>> {
        Self::within(path, Duration::ZERO)
    }

    fn within(path: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let opened = Anchored::at(path).and_then(|it| File::options().read(true).custom_flags(flags).open(it.path()));
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        share(&file, patience)?;
        let locked = Self { path: path.to_owned(), id: id(&file.metadata()?), file };
        Ok(locked.is_there().then_some(locked))
    }

    fn is_there(&self) -> bool {
        let found = Anchored::at(&self.path).and_then(|anchored| anchored.path().symlink_metadata());
        found.is_ok_and(|found| id(&found) == self.id)
    }

    /// Whether nobody else keeps it. It is not kept any longer either way.
    fn is_last(&self) -> bool {
        flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Removes it, if it is still empty.
    fn clear(&self) -> io::Result<()> {
        let anchored = Anchored::at(&self.path)?;
        let path = anchored.path();
        let found = path.symlink_metadata()?;
        if !is_placeholder(path, &found) {
            return Ok(());
        }
        let remove = || if found.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        let removed = match remove() {
            // A command may have closed its own directory.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => anchored.opened(remove),
            removed => removed,
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(io::Error::other(format!("{}: {error}", self.path.display())))
            }
            _ => Ok(()),
        }
    }
}

fn id(found: &Metadata) -> Id {
    (found.dev(), found.ino())
}

/// Whether there is nothing in it but what a placeholder has.
fn is_placeholder(path: &Path, found: &Metadata) -> bool {
    if found.is_dir() {
        return path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    }
    let says_common = || fs::read(path).is_ok_and(|text| text == COMMON_DIR);
    found.is_file() && (found.len() == 0 || found.len() == COMMON_DIR.len() as u64 && says_common())
}

/// Waits for whoever is about to remove it.
fn share(file: &File, patience: Duration) -> io::Result<()> {
    let give_up = Instant::now() + patience;
    loop {
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) if Instant::now() < give_up => std::thread::sleep(PAUSE),
            Err(Errno::WOULDBLOCK) => return Err(io::Error::other("some process keeps it locked")),
            // Where nothing can be locked, nobody gets the lock that it takes to remove it.
            Ok(()) | Err(_) => return Ok(()),
        }
    }
}

impl Records {
    /// Makes one that has been announced.
    fn make(&self, placeholder: &Placeholder, due: &Due) -> io::Result<Made> {
        if !make(placeholder, due)? {
            return Ok(Made::Nothing);
        }
        let Some(locked) = Locked::at(&placeholder.path)? else { return Ok(Made::Changed) };
        if let Err(error) = self.add(locked.id, &placeholder.path) {
            if locked.is_last() {
                locked.clear()?;
            }
            return Err(error);
        }
        Ok(Made::Locked(locked))
    }
}

/// Whether it was made. Not where nobody can make anything.
fn make(placeholder: &Placeholder, due: &Due) -> io::Result<bool> {
    let anchored = Anchored::at(&placeholder.path)?;
    let path = anchored.path();
    // Another user's command must be able to lock it.
    let before = umask(Mode::empty());
    let made = match placeholder.kind {
        Kind::Directory => DirBuilder::new().mode(0o755).create(path),
        Kind::File => File::options().write(true).create_new(true).mode(0o644).open(path).map(drop),
        Kind::CommonDir => make_whole(path, &due.unfinished(path), COMMON_DIR),
    };
    umask(before);
    match made {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(false),
        // Somebody else's directory stays closed; one's own can be opened by the command.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_own_parent(&placeholder.path) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A file that is never seen without its content: git on the host would trip over it.
fn make_whole(path: &Path, unfinished: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o644).open(unfinished)?;
    let named =
        file.write_all(content).and_then(|()| Ok(renameat_with(CWD, unfinished, CWD, path, RenameFlags::NOREPLACE)?));
    if named.is_err() {
        let _ = fs::remove_file(unfinished);
    }
    named
}

fn is_own_parent(path: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.metadata().ok());
    parent.is_none_or(|parent| parent.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests;
