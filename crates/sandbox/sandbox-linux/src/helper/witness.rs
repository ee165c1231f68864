//! What became of the protected paths while a command ran.

mod snapshot;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::anchored::Anchored;
use super::protect::{Hold, Layout};
use crate::plan::Plan;

pub(super) use snapshot::Snapshot;

/// A look at what is held by mounts, before and after. What changes there was changed from outside, and may have undone
/// a mount.
pub(super) struct Watch {
    held: Vec<(PathBuf, Sign)>,
}

/// Which file it is, and when it changed last.
type Sign = (u64, u64, i64, i64);

impl Watch {
    /// What is hidden is Tether's own, which goes on writing there.
    pub(super) fn begin(plan: &Plan, layout: &Layout) -> Self {
        let is_hidden = |path: &Path| plan.hidden().any(|hidden| path.starts_with(hidden));
        let held = layout.binds().into_iter().filter(|bind| bind.hold == Hold::Whole && !is_hidden(&bind.path));
        let held = held.filter_map(|bind| Some((sign(&bind.path).ok()?, bind.path)));
        Self { held: held.map(|(sign, path)| (path, sign)).collect() }
    }

    /// Says what was found.
    pub(super) fn end(self) -> Vec<String> {
        self.held.into_iter().filter_map(|(path, before)| told(&path, before, sign(&path))).collect()
    }
}

fn told(path: &Path, before: Sign, now: io::Result<Sign>) -> Option<String> {
    let path = path.display();
    match now {
        Ok(now) if now == before => None,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(format!(
            "{path} is protected, and cannot be looked at any more: a directory on the way to it was closed while the command ran"
        )),
        _ => Some(format!("{path} is protected, and something outside the sandbox changed it while the command ran")),
    }
}

fn sign(path: &Path) -> io::Result<Sign> {
    let found = path.symlink_metadata()?;
    Ok((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
}

/// Removes what a command made at a protected path, and says so.
fn remove(path: &Path) -> String {
    let removed = Anchored::at(path).and_then(|anchored| {
        let path = anchored.path();
        let is_dir = path.symlink_metadata()?.is_dir();
        if is_dir { fs::remove_dir_all(path) } else { fs::remove_file(path) }
    });
    match removed {
        Ok(()) => format!("{} is protected; the command had made it, and it was removed", path.display()),
        Err(error) => {
            let what = "is protected; the command made it, and it could not be removed";
            format!("{} {what}: {error}", path.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_closed_is_not_said_to_have_been_changed_from_outside() {
        let before = (1, 2, 3, 4);
        let said = |now| told(Path::new("/w/.git/hooks"), before, now).unwrap_or_default();
        assert_eq!(said(Ok(before)), "");
        assert!(said(Err(io::ErrorKind::PermissionDenied.into())).contains("on the way to it was closed"));
        for now in [Ok((1, 2, 3, 5)), Err(io::ErrorKind::NotFound.into())] {
            assert!(said(now).contains("outside the sandbox changed it"));
        }
    }
}
