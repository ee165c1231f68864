//! How a directory is removed whatever was put there.

use std::ffi::{CStr, CString};
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, openat, openat2, renameat, unlinkat};
use rustix::io::Errno;

/// How many directories are open at a time while one is removed.
const LEVELS: usize = 64;

/// A directory that is being emptied.
struct Level {
    dir: OwnedFd,
    /// What it is called in the one above.
    name: CString,
    /// What of it has not been looked at.
    names: Vec<CString>,
}

/// Removes a directory that a stranger has filled: to any depth, with any permissions, without following a link and without
/// entering a mount. What is too deep is moved up, so that neither descriptors nor the stack run out.
///
/// # Errors
///
/// What the machine says; interrupted, if it no longer `goes_on`. The rest is then still there.
pub(crate) fn remove(above: impl AsFd, name: &CStr, goes_on: &mut dyn FnMut() -> bool) -> io::Result<()> {
    let level = |dir: OwnedFd, name| io::Result::Ok(Level { names: names(&dir)?, dir, name });
    let mut top = level(entered(&above, name)?, CString::default())?;
    let (root, mut below, mut moved) = (top.dir.try_clone()?, Vec::<Level>::new(), 0_u64);
    loop {
        let depth = below.len();
        let now = below.last_mut().unwrap_or(&mut top);
        if let Some(name) = now.names.pop() {
            if !goes_on() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if unlinked(&now.dir, &name)? {
                continue;
            }
            let dir = entered(&now.dir, &name)?;
            if depth < LEVELS {
                below.push(level(dir, name)?);
            } else {
                raise(&now.dir, &name, &root, &mut moved)?;
            }
            continue;
        }
        // There may be more than were looked at, and what was moved up.
        now.names = names(&now.dir)?;
        if !now.names.is_empty() {
            continue;
        }
        let Some(Level { dir, name, .. }) = below.pop() else { break };
        drop(dir);
        let holder = below.last().unwrap_or(&top);
        unlinkat(&holder.dir, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

/// Opens what is called that in a directory: no link, and nothing that is mounted there.
pub(crate) fn beneath(at: impl AsFd, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    openat2(at, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Opens a directory, after making it one that may be looked into and changed.
pub(crate) fn entered(at: impl AsFd, name: &CStr) -> io::Result<OwnedFd> {
    let named = beneath(at, name, OFlags::PATH | OFlags::DIRECTORY)?;
    // By its handle, so that it is this one whatever its name leads to by now.
    let here = format!("/proc/self/fd/{}", named.as_raw_fd());
    std::fs::set_permissions(&here, Permissions::from_mode(0o700))?;
    Ok(openat(&named, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Some of the names in a directory; none if it is empty.
pub(crate) fn names(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    const AT_ONCE: usize = 4096;
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
        if names.len() == AT_ONCE {
            break;
        }
    }
    Ok(names)
}

/// Removes what is no directory; says whether it did.
pub(crate) fn unlinked(dir: &OwnedFd, name: &CStr) -> io::Result<bool> {
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Moves a directory to the top, under a name that is free there.
fn raise(from: &OwnedFd, name: &CStr, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat(from, name, top, format!("raised-{moved}")) {
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            ended => return Ok(ended?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::CWD;

    use super::*;

    fn opened(path: &Path) -> OwnedFd {
        openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn whatever_was_put_there_goes_and_nothing_else_does() {
        let world = tempfile::tempdir().unwrap();
        let (dir, outside) = (world.path().join("d"), world.path().join("outside"));
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("kept"), "x").unwrap();
        symlink(&outside, dir.join("a/link")).unwrap();
        symlink(outside.join("kept"), dir.join("link")).unwrap();
        std::fs::write(dir.join("raised-1"), "in the way").unwrap();
        std::fs::create_dir_all(dir.join("raised-2/full")).unwrap();
        for n in 0..5000 {
            std::fs::write(dir.join(format!("a/{n}")), "").unwrap();
        }
        for closed in ["a/b", "a"] {
            std::fs::set_permissions(dir.join(closed), Permissions::from_mode(0o000)).unwrap();
        }
        remove(opened(world.path()), c"d", &mut || true).unwrap();
        assert!(!dir.exists());
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "x");
    }

    #[test]
    fn depth_is_no_obstacle() {
        let world = tempfile::tempdir().unwrap();
        let dir = world.path().join("d");
        std::fs::create_dir(&dir).unwrap();
        let mut at = opened(&dir);
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, c"down", Mode::RWXU).unwrap();
            at = openat(&at, c"down", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        drop(at);
        remove(opened(world.path()), c"d", &mut || true).unwrap();
        assert!(!dir.exists());
    }

    #[test]
    fn neither_a_link_nor_a_mount_is_entered() {
        let world = tempfile::tempdir().unwrap();
        symlink("/", world.path().join("link")).unwrap();
        let open = |at: &Path, name| beneath(opened(at), name, OFlags::RDONLY).map(drop);
        assert_eq!(open(world.path(), c"link"), Err(Errno::LOOP));
        assert_eq!(open(Path::new("/"), c"proc"), Err(Errno::XDEV));
        assert_eq!(open(Path::new("/proc"), c"self"), Err(Errno::LOOP));
        assert_eq!(open(Path::new("/proc"), c"tty"), Ok(()));
    }

    #[test]
    fn it_stops_when_it_is_to_and_goes_on_from_there() {
        let world = tempfile::tempdir().unwrap();
        let dir = world.path().join("d");
        std::fs::create_dir_all(dir.join("a/b")).unwrap();
        for n in 0..10 {
            std::fs::write(dir.join(format!("a/{n}")), "").unwrap();
        }
        let (above, mut left) = (opened(world.path()), 5);
        let mut goes_on = || {
            left -= 1;
            left > 0
        };
        let stopped = remove(&above, c"d", &mut goes_on).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        let count = std::fs::read_dir(dir.join("a")).unwrap().count();
        assert!((1..=10).contains(&count), "some of it is there: {count}");
        remove(&above, c"d", &mut || true).unwrap();
        assert!(!dir.exists());
    }
}
