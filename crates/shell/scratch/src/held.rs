//! A directory and the lock that says who may remove it.

use std::ffi::{CStr, CString, OsStr};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::remove::{beneath, entered, names, remove, unlinked};

pub(crate) const OUTPUT: &str = "output";
pub(crate) const TMP: &str = "tmp";

const PREFIX: &str = "tether-";
const RANDOM: usize = 6;
const LOCK: &CStr = c"tether-scratch.lock";

/// How often one is made anew that was removed before it was locked.
const ATTEMPTS: usize = 16;

/// One that this process made. Dropping it removes it too, as well as that goes.
#[derive(Debug)]
pub(crate) struct Held {
    /// Before the lock, so that it is removed under it.
    dir: TempDir,
    lock: OwnedFd,
}

/// One whose maker is gone, and that nobody else removes.
pub(crate) struct Orphan {
    dir: OwnedFd,
    lock: OwnedFd,
}

/// Whether a name is one that we give.
pub(crate) fn is_ours(name: &CStr) -> bool {
    let random = name.to_bytes().strip_prefix(PREFIX.as_bytes());
    random.is_some_and(|random| random.len() == RANDOM && random.iter().all(u8::is_ascii_alphanumeric))
}

impl Held {
    /// `place` is asked for each time: it may be removed meanwhile by whoever found it empty.
    pub(crate) fn make(place: impl Fn() -> io::Result<PathBuf>) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        for _ in 0..ATTEMPTS {
            let (place, mut named) = (place()?, tempfile::Builder::new());
            let made = named.prefix(PREFIX).rand_bytes(RANDOM).permissions(private.clone()).tempdir_in(place);
            let dir = match made {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                made => made?,
            };
            match lock_new(dir.path()) {
                Ok(lock) => return Ok(Self { dir, lock }),
                // Who looks for orphans found it without a holder.
                Err(Errno::NOENT | Errno::WOULDBLOCK) => drop(dir.keep()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("what is made there is removed at once"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn remove(self) -> io::Result<()> {
        let Self { dir, lock } = self;
        let path: PathBuf = dir.keep();
        let above = path.parent().ok_or(io::ErrorKind::NotFound)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let above = openat(CWD, above, flags, Mode::empty())?;
        let name = CString::new(path.file_name().unwrap_or_default().as_bytes())?;
        let dir = entered(&above, &name)?;
        Orphan { dir, lock }.remove(&above, &name, &mut || true)
    }

    pub(crate) fn place(&self) -> &Path {
        self.path().parent().unwrap_or(self.path())
    }
}

impl Orphan {
    /// Takes the lock, if there is nothing about it that is not ours.
    pub(crate) fn take(above: impl AsFd, name: &CStr) -> Option<Self> {
        let dir = beneath(above, name, OFlags::RDONLY | OFlags::DIRECTORY).ok()?;
        let stat = fstat(&dir).ok()?;
        if stat.st_uid != geteuid().as_raw() || Mode::from_raw_mode(stat.st_mode) != Mode::RWXU {
            return None;
        }
        let lock = beneath(&dir, LOCK, OFlags::RDWR | OFlags::NONBLOCK).ok()?;
        is_lock(&fstat(&lock).ok()?).then_some(())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        // Somebody else may have had it, and removed all of it.
        (fstat(&lock).ok()?.st_nlink == 1).then_some(Self { dir, lock })
    }

    /// Removes it, as long as it `goes_on`. The lock file is the last of it: what is left is found again.
    pub(crate) fn remove(self, above: impl AsFd, name: &CStr, goes_on: &mut dyn FnMut() -> bool) -> io::Result<()> {
        loop {
            let mut rest = names(&self.dir)?;
            rest.retain(|name| **name != *LOCK);
            if rest.is_empty() {
                break;
            }
            for name in rest {
                if !goes_on() {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                if !unlinked(&self.dir, &name)? {
                    remove(&self.dir, &name, goes_on)?;
                }
            }
        }
        unlinked(&self.dir, LOCK)?;
        unlinkat(above, name, AtFlags::REMOVEDIR)?;
        drop(self.lock);
        Ok(())
    }
}

fn lock_new(dir: &Path) -> Result<OwnedFd, Errno> {
    let path = dir.join(OsStr::from_bytes(LOCK.to_bytes()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = openat(CWD, path, flags, Mode::RUSR | Mode::WUSR)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    if fstat(&lock)?.st_nlink == 1 { Ok(lock) } else { Err(Errno::NOENT) }
}

fn is_lock(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_uid == geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::sweep::sweep;

    fn made(place: &Path) -> io::Result<Held> {
        Held::make(|| Ok(place.to_owned()))
    }

    /// One as a killed process leaves it.
    fn orphan(place: &Path) -> PathBuf {
        let Held { dir, lock } = made(place).unwrap();
        drop(lock);
        let path = dir.keep();
        fs::create_dir_all(path.join("tmp/a/b")).unwrap();
        fs::create_dir(path.join("output")).unwrap();
        fs::write(path.join("tmp/a/b/c"), "x").unwrap();
        fs::write(path.join("stray"), "x").unwrap();
        path
    }

    fn lock_of(dir: &Path) -> PathBuf {
        dir.join(LOCK.to_str().unwrap())
    }

    fn all(place: &Path) -> Vec<PathBuf> {
        let mut all: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all
    }

    #[test]
    fn only_what_is_ours_and_nobodys_goes() {
        let world = tempfile::tempdir().unwrap();
        let (place, outside) = (world.path().join("place"), world.path().join("outside"));
        fs::create_dir_all(&place).unwrap();
        fs::create_dir_all(&outside).unwrap();
        let mut kept = Vec::new();
        let mut keep = |path: PathBuf| kept.push(path);

        let live = made(&place).unwrap();
        keep(live.path().to_owned());
        let other_name = place.join("tether-probe-abcdef");
        fs::rename(orphan(&place), &other_name).unwrap();
        keep(other_name);
        let open = orphan(&place);
        fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        keep(open);
        let sticky = orphan(&place);
        fs::set_permissions(&sticky, Permissions::from_mode(0o1700)).unwrap();
        keep(sticky);
        let unmarked = orphan(&place);
        fs::remove_file(lock_of(&unmarked)).unwrap();
        keep(unmarked);
        let linked = orphan(&place);
        fs::remove_file(lock_of(&linked)).unwrap();
        fs::write(outside.join("file"), "x").unwrap();
        symlink(outside.join("file"), lock_of(&linked)).unwrap();
        keep(linked);
        let directory = orphan(&place);
        fs::remove_file(lock_of(&directory)).unwrap();
        fs::create_dir(lock_of(&directory)).unwrap();
        keep(directory);
        let pipe = orphan(&place);
        fs::remove_file(lock_of(&pipe)).unwrap();
        rustix::fs::mknodat(CWD, lock_of(&pipe), FileType::Fifo, 0o600.into(), 0).unwrap();
        keep(pipe);
        let file = place.join("tether-file00");
        fs::write(&file, "x").unwrap();
        keep(file);
        let leads_out = place.join("tether-link00");
        symlink(orphan(&outside), &leads_out).unwrap();
        keep(leads_out);
        if geteuid().is_root() {
            for foreign in [orphan(&place), lock_of(&orphan(&place))] {
                std::os::unix::fs::chown(&foreign, Some(12_345), None).unwrap();
                keep(if foreign.is_dir() { foreign } else { foreign.parent().unwrap().to_owned() });
            }
        }
        let gone = [orphan(&place), orphan(&place)];
        symlink(&outside, gone[0].join("tmp/out")).unwrap();

        sweep(&place, || true);
        kept.sort();
        assert_eq!(all(&place), kept);
        assert!(
            kept.iter().filter(|path| path.is_dir() && **path != live.path()).all(|dir| dir.join("tmp/a/b/c").exists())
        );
        assert_eq!(all(&outside).len(), 2, "nothing outside was touched");
        live.remove().unwrap();
    }

    /// Neither a stranger's names nor our own that are in use are counted.
    #[test]
    fn names_that_are_not_removed_do_not_stop_it() {
        let place = tempfile::tempdir().unwrap();
        let live: Vec<_> = (0..10).map(|_| made(place.path()).unwrap()).collect();
        for n in 0..5_001 {
            let foreign = place.path().join(format!("tether-{n:06}"));
            fs::create_dir(&foreign).unwrap();
            if geteuid().is_root() {
                std::os::unix::fs::chown(&foreign, Some(12_345), None).unwrap();
            }
        }
        let orphans: Vec<_> = (0..3).map(|_| orphan(place.path())).collect();
        sweep(place.path(), || true);
        assert!(orphans.iter().all(|orphan| !orphan.exists()));
        assert!(live.iter().all(|live| lock_of(live.path()).exists()));
    }

    #[test]
    fn a_sweep_that_stops_leaves_what_the_next_one_finds() {
        let place = tempfile::tempdir().unwrap();
        let orphans = [orphan(place.path()), orphan(place.path())];
        let mut sweeps = 0;
        for most in 1.. {
            let mut left = most;
            sweep(place.path(), || {
                left -= 1;
                left >= 0
            });
            sweeps = most;
            let still: Vec<_> = orphans.iter().filter(|dir| dir.exists()).collect();
            assert!(still.iter().all(|dir| lock_of(dir).exists()), "its mark is the last of it");
            if still.is_empty() {
                break;
            }
        }
        assert!(sweeps > 2, "the limit held");
    }

    #[test]
    fn one_that_was_removed_meanwhile_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let path = orphan(place.path());
        let above = openat(CWD, place.path(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        let name = CString::new(path.file_name().unwrap().as_bytes()).unwrap();
        let first = Orphan::take(&above, &name).unwrap();
        assert!(Orphan::take(&above, &name).is_none(), "somebody has it");
        drop(first);
        fs::hard_link(lock_of(&path), place.path().join("elsewhere")).unwrap();
        assert!(Orphan::take(&above, &name).is_none(), "its lock is not its own");
        fs::remove_file(place.path().join("elsewhere")).unwrap();
        assert!(Orphan::take(&above, &name).is_some());
    }

    #[test]
    fn makers_and_sweepers_do_not_meet() {
        let place = tempfile::tempdir().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let done = || stop.load(std::sync::atomic::Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done() {
                        sweep(place.path(), || true);
                    }
                });
            }
            for _ in 0..300 {
                orphan_beside(place.path());
                let held = made(place.path()).unwrap();
                fs::create_dir(held.path().join(TMP)).unwrap();
                std::thread::yield_now();
                assert!(held.path().join(TMP).exists() && lock_of(held.path()).exists());
                held.remove().unwrap();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        sweep(place.path(), || true);
        assert_eq!(all(place.path()), Vec::<PathBuf>::new());
    }

    /// One that is let go of while others look.
    fn orphan_beside(place: &Path) {
        let Held { dir, lock } = made(place).unwrap();
        fs::create_dir(dir.path().join(TMP)).unwrap();
        drop((dir.keep(), lock));
    }

    #[test]
    fn whatever_was_done_to_it_it_goes_with_its_maker() {
        let place = tempfile::tempdir().unwrap();
        let held = made(place.path()).unwrap();
        fs::create_dir_all(held.path().join("beside/it")).unwrap();
        fs::remove_file(lock_of(held.path())).unwrap();
        fs::set_permissions(held.path(), Permissions::from_mode(0o000)).unwrap();
        held.remove().unwrap();
        assert_eq!(all(place.path()).len(), 0);
    }
}
