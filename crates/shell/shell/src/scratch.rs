//! A directory of the session's own, and how it is removed whatever was put there.

use std::ffi::{CStr, CString};
use std::fs::{Permissions, create_dir};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use context::{BoxError, Closing, Ctx};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use tempfile::TempDir;

/// Directories of a session's own below the machine's temporary one, under a name that nobody guesses, for its user alone.
/// They are removed when the scope that they were made for closes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it. Whatever `ctx` owns later is gone before it is removed.
    ///
    /// # Errors
    ///
    /// What the machine says; a closing scope counts as interrupted.
    pub fn make(ctx: &Ctx) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let dir = tempfile::Builder::new().prefix("tether-").permissions(private).tempdir()?;
        let path = dir.path().canonicalize()?;
        create_dir(path.join("output"))?;
        create_dir(path.join("tmp"))?;
        ctx.on_close("remove the session's temporary files", move || removed(dir))
            .map_err(|closing: Closing| io::Error::new(io::ErrorKind::Interrupted, closing))?;
        Ok(Self { path })
    }

    /// Where output is kept that is too long to be shown. No confined command can write there.
    pub fn output(&self) -> PathBuf {
        self.path.join("output")
    }

    /// A temporary directory for commands, where the session has no other.
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }
}

async fn removed(dir: TempDir) -> Result<(), BoxError> {
    let path = dir.keep();
    Ok(tokio::task::spawn_blocking(move || remove(&path)).await??)
}

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

/// Removes a directory that a stranger has filled: to any depth, with any permissions, without following a link. What is
/// too deep is moved up, so that neither descriptors nor the stack run out.
///
/// # Errors
///
/// What the machine says. The rest is then still there.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let level = |dir: OwnedFd, name| io::Result::Ok(Level { names: names(&dir)?, dir, name });
    let mut top = level(entered(CWD, path)?, CString::default())?;
    let (root, mut below, mut moved) = (top.dir.try_clone()?, Vec::<Level>::new(), 0_u64);
    loop {
        let depth = below.len();
        let now = below.last_mut().unwrap_or(&mut top);
        if let Some(name) = now.names.pop() {
            if unlinked(&now.dir, &name)? {
                continue;
            }
            let dir = entered(&now.dir, &*name)?;
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
        let above = below.last().unwrap_or(&top);
        unlinkat(&above.dir, &*name, AtFlags::REMOVEDIR)?;
    }
    drop(top);
    std::fs::remove_dir(path)
}

/// Opens a directory, after making it one that may be looked into and changed.
fn entered(at: impl AsFd, path: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    let named = openat(at, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    // By its handle, so that it is this one whatever its name leads to by now.
    let here = format!("/proc/self/fd/{}", named.as_raw_fd());
    std::fs::set_permissions(&here, Permissions::from_mode(0o700))?;
    Ok(openat(&named, c".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Some of the names in a directory; none if it is empty.
fn names(dir: &OwnedFd) -> io::Result<Vec<CString>> {
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
fn unlinked(dir: &OwnedFd, name: &CStr) -> io::Result<bool> {
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

    use super::*;

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
        remove(&dir).unwrap();
        assert!(!dir.exists());
        assert_eq!(std::fs::read_to_string(outside.join("kept")).unwrap(), "x");
    }

    #[test]
    fn depth_is_no_obstacle() {
        let world = tempfile::tempdir().unwrap();
        let dir = world.path().join("d");
        std::fs::create_dir(&dir).unwrap();
        let mut at = entered(CWD, &dir).unwrap();
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&at, c"down", Mode::RWXU).unwrap();
            at = openat(&at, c"down", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        drop(at);
        remove(&dir).unwrap();
        assert!(!dir.exists());
    }
}
