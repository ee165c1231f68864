//! What this user could do on the host, where nothing is confined.

use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::process::{getegid, geteuid, getgroups};

use super::said::Said;

/// A path without links, what does not exist of it included: a link may lead to where nothing is. `None` for what no path can
/// be.
pub(super) fn resolve(path: &Path) -> Option<PathBuf> {
    const LONGEST: usize = 4_096;
    const MOST_LINKS: usize = 40;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > LONGEST || bytes.contains(&0) {
        return None;
    }
    let mut path = super::lexical(path);
    for _ in 0..MOST_LINKS {
        let (exists, missing) = split(&path)?;
        let above = exists.canonicalize().ok()?;
        let Some(name) = missing.iter().next() else { return Some(above) };
        let Ok(target) = above.join(name).read_link() else { return Some(above.join(&missing)) };
        let rest: PathBuf = missing.iter().skip(1).collect();
        path = super::lexical(&above.join(target).join(rest));
    }
    None
}

/// The part of a path that exists, and the rest.
fn split(path: &Path) -> Option<(&Path, PathBuf)> {
    let exists = path.ancestors().find(|above| above.exists())?;
    Some((exists, path.strip_prefix(exists).ok()?.to_owned()))
}

/// Whether this user could write at a path: to what is there, or in the directory that it would be made or removed in. On a
/// file system that is mounted read-only nobody can.
pub(super) fn lets_write(path: &Path) -> bool {
    let may = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    let Some((exists, missing)) = split(path) else { return false };
    match missing.iter().count() {
        0 => {}
        1 => return exists.is_dir() && may(exists),
        // Something else is missing first.
        _ => return false,
    }
    may(exists) || exists.parent().is_some_and(may)
}

/// Whether something else than a sandbox explains that a path was denied: it may not be read, written, searched or executed
/// by its mode. A process that has given up its capabilities is judged by the mode alone.
pub(super) fn explains(path: &Path, said: &Said<'_>, named: &str) -> bool {
    let Some((exists, missing)) = split(path) else { return true };
    let Ok(found) = exists.metadata() else { return true };
    let may = |bit| allows(&found, bit);
    if missing != Path::new("") {
        // What is not there can neither be read nor executed, but a bare word need not be a path.
        let is_word = !said.writes && !named.contains('/');
        return is_word || !may(WRITE) || !may(EXECUTE);
    }
    match said.writes {
        true => {
            !may(WRITE) && !exists.parent().and_then(|above| above.metadata().ok()).is_some_and(|it| allows(&it, WRITE))
        }
        false => !may(READ) || !may(WRITE) || (found.is_file() && !may(EXECUTE)),
    }
}

const READ: u32 = 0o4;
const WRITE: u32 = 0o2;
const EXECUTE: u32 = 0o1;

fn allows(found: &Metadata, bit: u32) -> bool {
    let groups = getgroups().unwrap_or_default();
    let in_group = found.gid() == getegid().as_raw() || groups.iter().any(|group| group.as_raw() == found.gid());
    let shift = match () {
        () if found.uid() == geteuid().as_raw() => 6,
        () if in_group => 3,
        () => 0,
    };
    found.mode() >> shift & bit != 0
}
