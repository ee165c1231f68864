//! Locks on files that come and go with their sessions.

use std::fs::TryLockError;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, RenameFlags, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::folder::{Folder, OpenFile, pid_in};
use super::{Blob, Leased, Stat};
use crate::names::Names;

/// Enough for an unlucky race on every one of them.
const TRIES: usize = 64;

/// Dropping it frees the lock, and its name.
struct OsLease {
    /// Until then.
    lock: Option<LockFile>,
    spare: Arc<Spare>,
}

/// A real file that is locked, or was tried.
struct LockFile {
    folder: Arc<OwnedFd>,
    name: String,
    file: OpenFile,
}

/// The lock file of a session that was let go of, kept locked under another name for the next one: while the disk is
/// being synced, a new file costs ten times what a new name does.
#[derive(Default)]
pub(super) struct Spare(Mutex<Slot>);

#[derive(Default)]
struct Slot {
    kept: Option<LockFile>,
    closed: bool,
}

/// The lock of that name, made if it is not there.
pub(super) fn take(folder: &Folder, name: &str) -> io::Result<Leased> {
    let (handle, spare) = (folder.handle()?, folder.spare());
    let mine = |lock| Leased::Mine(Box::new(OsLease { lock: Some(lock), spare: spare.clone() }));
    if let Some(lock) = spare.reuse(&handle, name) {
        return Ok(mine(lock));
    }
    for _ in 0..TRIES {
        let lock = LockFile { folder: handle.clone(), name: name.to_owned(), file: folder.lock_file(name)? };
        let is_ours = match lock.file.file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        // Whoever had it before may have taken its name away between our opening and our locking. A lock on a file that
        // is not called so excludes nobody.
        let Some(found) = lock.named()? else { continue };
        if !is_ours {
            return Ok(Leased::Held(pid_in(&lock.file.file)));
        }
        let pid = format!("{}\n", std::process::id());
        lock.file.file.write_all_at(pid.as_bytes(), 0)?;
        if found.len > pid.len() as u64 {
            lock.file.set_len(pid.len() as u64)?;
        }
        return Ok(mine(lock));
    }
    Err(io::Error::new(io::ErrorKind::ResourceBusy, "its lock changes hands all the time"))
}

impl Spare {
    /// What is kept, under the name of a session, if nothing else has that.
    fn reuse(&self, folder: &Arc<OwnedFd>, name: &str) -> Option<LockFile> {
        let mut lock = self.slot().kept.take()?;
        // A directory that was removed gives no names any more.
        let is_here = Arc::ptr_eq(folder, &lock.folder);
        if is_here && lock.rename(name).is_ok() && lock.is_named() {
            return Some(lock);
        }
        lock.let_go();
        None
    }

    /// Keeps a lock if there is none, or lets go of it.
    fn keep(&self, mut lock: LockFile) {
        let is_wanted = |slot: &Slot| slot.kept.is_none() && !slot.closed;
        let wanted = is_wanted(&self.slot());
        if wanted && lock.is_named() && lock.rename(&Names::spare(std::process::id())).is_ok() {
            let mut slot = self.slot();
            if is_wanted(&slot) {
                slot.kept = Some(lock);
                return;
            }
        }
        lock.let_go();
    }

    /// Keeps nothing from now on.
    pub(super) fn close(&self) {
        let kept = {
            let mut slot = self.slot();
            slot.closed = true;
            slot.kept.take()
        };
        if let Some(lock) = kept {
            lock.let_go();
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockFile {
    /// What its name leads to, if that is its file.
    fn named(&self) -> io::Result<Option<Stat>> {
        match statat(&*self.folder, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok(Some(Stat::of(&named)).filter(|named| named.identity == self.file.as_opened().identity)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_named(&self) -> bool {
        matches!(self.named(), Ok(Some(_)))
    }

    /// To a name that must be free.
    fn rename(&mut self, name: &str) -> io::Result<()> {
        renameat_with(&*self.folder, self.name.as_str(), &*self.folder, name, RenameFlags::NOREPLACE)?;
        self.name = name.to_owned();
        Ok(())
    }

    fn let_go(self) {
        // The name goes first: who opens the file before that sees, once it has the lock, that the name is gone.
        if self.is_named()
            && let Err(error) = unlinkat(&*self.folder, self.name.as_str(), AtFlags::empty())
        {
            tracing::warn!(lock = self.name, %error, "a lock file could not be removed");
        }
        // Closing is not enough: a process that was forked and has not yet executed shares the open file.
        if let Err(error) = self.file.file.unlock() {
            tracing::warn!(lock = self.name, %error, "a lock could not be freed");
        }
    }
}

impl Drop for OsLease {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            self.spare.keep(lock);
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::super::{Disk, Lease};
    use super::*;

    /// Each lease removes the file, so that almost every opening meets a lock that changes hands.
    #[test]
    fn a_lock_excludes_while_its_file_comes_and_goes() {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let (taken, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let fight = || {
            // Each its own handle, as a process would have.
            let folder = Folder::new(home.path().to_owned());
            for _ in 0..5_000 {
                if let Ok(Leased::Mine(lease)) = folder.lease("lock") {
                    assert!(!taken.swap(true, Ordering::SeqCst), "two have it");
                    count.fetch_add(1, Ordering::SeqCst);
                    assert!(matches!(folder.lease("lock"), Ok(Leased::Held(_))), "the lock file is there");
                    assert!(taken.swap(false, Ordering::SeqCst));
                    drop(lease);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(fight);
            }
        });
        assert!(count.load(Ordering::SeqCst) > 0);
        assert_eq!(Folder::new(home.path().to_owned()).names().expect("it is there"), [".", ".."], "nothing is left");
    }

    /// A directory, and what of it is seen by a process: each has a handle of its own.
    fn place() -> (tempfile::TempDir, Folder, Folder) {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let (ours, theirs) = (Folder::new(home.path().to_owned()), Folder::new(home.path().to_owned()));
        (home, ours, theirs)
    }

    fn names(folder: &Folder) -> Vec<String> {
        let mut names = folder.names().expect("it is there");
        names.retain(|name| !name.starts_with('.') || name.len() > 2);
        names.sort();
        names
    }

    fn mine(folder: &Folder, name: &str) -> Lease {
        match folder.lease(name) {
            Ok(Leased::Mine(lease)) => lease,
            Ok(Leased::Held(pid)) => panic!("`{name}` is held by {pid:?}"),
            Err(error) => panic!("`{name}`: {error}"),
        }
    }

    fn is_held(folder: &Folder, name: &str) -> bool {
        matches!(folder.lease(name), Ok(Leased::Held(Some(pid))) if pid == std::process::id())
    }

    #[test]
    fn a_lock_file_goes_from_session_to_session() {
        let (home, ours, theirs) = place();
        let spare = Names::spare(std::process::id());
        let inode = |name: &str| theirs.stat(name).expect("it is there").identity;
        let first = mine(&ours, "a.lock");
        let identity = inode("a.lock");
        drop(first);
        assert_eq!(names(&ours), std::slice::from_ref(&spare));
        let second = mine(&ours, "b.lock");
        assert_eq!((names(&ours), inode("b.lock")), (vec!["b.lock".to_owned()], identity));
        assert!(is_held(&theirs, "b.lock") && ours.holder("b.lock") == Some(std::process::id()));
        let other = mine(&theirs, "a.lock");
        assert!(is_held(&ours, "a.lock"), "what was freed is free, and whoever takes it has it");
        drop((second, other));
        ours.close();
        theirs.close();
        assert_eq!(names(&ours), [""; 0]);
        drop(mine(&ours, "c.lock"));
        assert_eq!(names(&ours), [""; 0], "nothing is kept by a store that is closed");
        drop(home);
    }

    #[test]
    fn the_lock_that_is_kept_takes_nobodys_place() {
        let (_home, ours, theirs) = place();
        drop(mine(&ours, "a.lock"));
        let held = mine(&theirs, "b.lock");
        assert!(is_held(&ours, "b.lock"));
        assert_eq!(names(&ours), ["b.lock"], "it was of no use");
        drop(held);
    }

    /// Whoever may write there may break any lock. But a lock that excludes nobody is not taken for one.
    #[test]
    fn a_file_in_the_place_of_the_lock_that_is_kept_is_not_used() {
        let (home, ours, theirs) = place();
        drop(mine(&ours, "a.lock"));
        let spare = home.path().join(Names::spare(std::process::id()));
        std::fs::remove_file(&spare).and_then(|()| std::fs::write(&spare, "")).expect("they are ours");
        let lease = mine(&ours, "b.lock");
        assert!(is_held(&theirs, "b.lock"));
        drop(lease);
    }
}
