//! Where a path leads, by its names: links followed as far as they go, also where nothing is there yet. For people, and
//! for places that are named before they exist; never for opening.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use fs::FsError;
use rustix::fs::{PROC_SUPER_MAGIC, statfs};
use rustix::io::Errno;

use crate::asked::Asked;
use crate::fence::Ground;
use crate::handle::Handle;

/// How many links a path may lead through.
const MAX_LINKS: usize = 40;

impl Ground {
    /// What a write of `asked` would reach, if nothing changed until then.
    pub(crate) fn leads_to(&self, asked: &Asked) -> Result<PathBuf, FsError> {
        let root = self.workspace.root();
        if asked.full.starts_with(root) {
            let now = Handle::root(root).map_err(|error| asked.failed(error))?;
            if now.id() != self.root.id() {
                return Err(FsError::Changed(asked.shown.clone()));
            }
        }
        lands(&asked.full).map_err(|error| asked.failed(error))
    }
}

/// `path`, absolute, with every link on it followed, also one that dangles. What does not exist is taken as it is named.
pub(crate) fn lands(path: &Path) -> io::Result<PathBuf> {
    let mut walk = Walk::along(path)?;
    while walk.step()? {}
    Ok(walk.at)
}

/// The way along a path, one name after the other, through links as well.
pub(crate) struct Walk {
    /// How far it came: where it ends, or, after an error, what it could not go on from.
    pub(crate) at: PathBuf,
    /// The links that it went through.
    pub(crate) links: Vec<PathBuf>,
    ahead: Vec<OsString>,
}

impl Walk {
    pub(crate) fn along(path: &Path) -> io::Result<Self> {
        Ok(Self { at: PathBuf::from("/"), links: Vec::new(), ahead: parts(&std::path::absolute(path)?) })
    }

    /// Goes on by one name. Whether there was one.
    pub(crate) fn step(&mut self) -> io::Result<bool> {
        let Some(part) = self.ahead.pop() else { return Ok(false) };
        if part == ".." {
            if !self.at.metadata()?.is_dir() {
                return Err(Errno::NOTDIR.into());
            }
            self.at.pop();
            return Ok(true);
        }
        let next = self.at.join(&part);
        let target = match next.read_link() {
            Ok(target) => target,
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => {
                    self.at = next;
                    return Ok(true);
                }
                _ => return Err(error),
            },
        };
        if self.links.len() == MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        self.links.push(next);
        if !self.ahead.is_empty() && shows_a_process(&self.at, &target)? {
            return Err(io::Error::other("it leads through a process, and where to cannot be told"));
        }
        if target.is_absolute() {
            self.at = PathBuf::from("/");
        }
        self.ahead.extend(parts(&target));
        Ok(true)
    }
}

/// How else than by [`lands`] a place is called: as it was given, and by its own name where that is a link.
pub(crate) fn names(path: &Path) -> io::Result<Vec<PathBuf>> {
    let given = std::path::absolute(path)?;
    let own = match (given.parent(), given.file_name()) {
        (Some(parent), Some(name)) => Some(lands(parent)?.join(name)),
        _ => None,
    };
    Ok(own.into_iter().chain([given]).collect())
}

/// The names of a path, the last first.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    names.rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Whether a link is one by which `/proc` shows what a process has open: the kernel does not go by its text.
fn shows_a_process(directory: &Path, target: &Path) -> io::Result<bool> {
    let by_text = target.is_relative() && !target.as_os_str().as_bytes().contains(&b':');
    Ok(!by_text && statfs(directory)?.f_type == PROC_SUPER_MAGIC)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_to_where_nothing_is_yet() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("file"), "").unwrap();
        symlink("b/../../new", top.join("a/first")).unwrap();
        symlink(top.join("a/first"), top.join("second")).unwrap();
        symlink("second", top.join("third")).unwrap();
        symlink("turning", top.join("turning")).unwrap();
        for (path, want) in [
            ("a/b/../../file", "file"),
            ("third", "new"),
            ("third/x/y", "new/x/y"),
            ("nowhere/x", "nowhere/x"),
            ("a/first", "new"),
        ] {
            assert_eq!(lands(&top.join(path)).unwrap(), top.join(want), "{path}");
        }
        let failed = |path: &str| Errno::from_io_error(&lands(&top.join(path)).unwrap_err());
        assert_eq!(failed("turning"), Some(Errno::LOOP));
        assert_eq!(failed("nowhere/../x"), Some(Errno::NOENT));
        assert_eq!(failed("file/../x"), Some(Errno::NOTDIR));
    }

    #[test]
    fn forty_links_are_followed_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for n in 0..=MAX_LINKS {
            symlink(format!("{n}"), top.join(format!("{}", n + 1))).unwrap();
        }
        assert_eq!(lands(&top.join("40")).unwrap(), top.join("0"));
        assert_eq!(Errno::from_io_error(&lands(&top.join("41")).unwrap_err()), Some(Errno::LOOP));
    }

    #[test]
    fn a_way_through_a_process_is_not_told() {
        for path in ["/proc/self/root/etc/x", "/proc/self/cwd/x", "/proc/self/fd/0/x"] {
            assert!(lands(Path::new(path)).is_err(), "{path}");
        }
        let own = format!("/proc/{}/status", std::process::id());
        assert_eq!(lands(Path::new("/proc/self/status")).unwrap(), Path::new(&own));
    }
}
