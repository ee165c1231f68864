//! Where the directories of this user's sessions are: all in one, which is held as a whole against every command.

use std::ffi::{CString, OsStr};
use std::fs::{DirBuilder, Permissions, set_permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::process::geteuid;

/// What a session's temporary directories are made apart from: its own directory, in which commands write. Provided to
/// the realm that [`Scratch::make`](crate::Scratch::make) is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart(pub PathBuf);

/// Every directory that this user's sessions may have theirs in, whether it exists or not. Nothing in any of them is for
/// commands but a session's own [`tmp`](crate::Scratch::tmp).
pub fn places() -> Vec<PathBuf> {
    let mut places: Vec<_> =
        candidates().into_iter().filter_map(|dir| Some(dir.canonicalize().ok()?.join(name()))).collect();
    places.sort();
    places.dedup();
    places
}

/// Whether a path is called as a place of this user's is.
pub fn is_place(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new(&name()))
}

/// The place to make one in: below the machine's temporary directory, unless that is inside of what it is to be apart from, or
/// somebody else has taken the name there.
pub(crate) fn place(apart: Option<&Apart>) -> io::Result<PathBuf> {
    let apart = apart.and_then(|Apart(path)| path.canonicalize().ok());
    let is_apart = |dir: &Path| apart.as_ref().is_none_or(|root| !dir.starts_with(root));
    let machine = std::env::temp_dir().canonicalize()?;
    let first = if is_apart(&machine) { opened(&machine)? } else { None };
    let other = || {
        let dirs = candidates().into_iter().filter_map(|dir| dir.canonicalize().ok());
        dirs.filter(|dir| *dir != machine && is_apart(dir)).find_map(|dir| opened(&dir).ok().flatten())
    };
    // Where everything is the session's, there is no place apart from it.
    let last = || if is_apart(&machine) { Ok(None) } else { opened(&machine) };
    if let Some(place) = first.or_else(other) {
        return Ok(place);
    }
    last()?.ok_or_else(|| {
        let taken = machine.join(name());
        io::Error::other(format!("{} is there, and is no directory of this user's alone", taken.display()))
    })
}

/// Removes a place in which nothing is left, unless a command that runs needs it to stay.
pub(crate) fn leave(place: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(dir) = openat(CWD, place, flags, Mode::empty()) else { return };
    if flock(&dir, FlockOperation::NonBlockingLockExclusive).is_ok()
        && let Ok(path) = CString::new(place.as_os_str().as_bytes())
    {
        let _ = unlinkat(CWD, path, AtFlags::REMOVEDIR);
    }
}

fn name() -> String {
    format!("tether-{}", geteuid().as_raw())
}

fn candidates() -> [PathBuf; 4] {
    let run = Path::new("/run/user").join(geteuid().as_raw().to_string());
    [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), run]
}

/// The place in a directory, made if it is missing; `None` if somebody else has taken its name.
fn opened(dir: &Path) -> io::Result<Option<PathBuf>> {
    let place = dir.join(name());
    match DirBuilder::new().mode(0o700).create(&place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = match place.symlink_metadata() {
        Ok(found) => found,
        // It was removed meanwhile, and is made anew.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(place)),
        Err(error) => return Err(error),
    };
    let others_write = found.mode() & 0o022 != 0;
    if !found.is_dir() || found.uid() != geteuid().as_raw() || others_write {
        return Ok(None);
    }
    // A sandbox that held the name has made it for everybody to see.
    if found.mode() & 0o7777 != 0o700 {
        set_permissions(&place, Permissions::from_mode(0o700))?;
    }
    Ok(Some(place))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_name_that_somebody_else_has_taken_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join(name());
        assert_eq!(opened(dir.path()).unwrap().as_deref(), Some(&*place));
        set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(opened(dir.path()).unwrap().as_deref(), Some(&*place));
        assert_eq!(place.metadata().unwrap().mode() & 0o7777, 0o700, "it is closed again");
        set_permissions(&place, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(opened(dir.path()).unwrap(), None, "anybody may have put something there");
        fs::remove_dir(&place).unwrap();
        fs::write(&place, "").unwrap();
        assert_eq!(opened(dir.path()).unwrap(), None);
        fs::remove_file(&place).unwrap();
        symlink(dir.path(), &place).unwrap();
        assert_eq!(opened(dir.path()).unwrap(), None, "it leads elsewhere");
        if geteuid().is_root() {
            fs::remove_file(&place).unwrap();
            fs::create_dir(&place).unwrap();
            std::os::unix::fs::chown(&place, Some(12_345), None).unwrap();
            assert_eq!(opened(dir.path()).unwrap(), None, "it is another user's");
        }
    }

    #[test]
    fn a_place_that_is_needed_is_not_left() {
        let dir = tempfile::tempdir().unwrap();
        let place = opened(dir.path()).unwrap().unwrap();
        let needs = fs::File::open(&place).unwrap();
        flock(&needs, FlockOperation::NonBlockingLockShared).unwrap();
        leave(&place);
        assert!(place.exists(), "a command needs it");
        drop(needs);
        fs::write(place.join("x"), "").unwrap();
        leave(&place);
        assert!(place.exists(), "there is something in it");
        fs::remove_file(place.join("x")).unwrap();
        leave(&place);
        assert!(!place.exists());
    }
}
