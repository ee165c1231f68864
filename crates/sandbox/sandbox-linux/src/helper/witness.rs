//! What became of the protected paths while a command ran.

mod snapshot;

use std::fs;
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
        let held = held.filter_map(|bind| Some((sign(&bind.path)?, bind.path)));
        Self { held: held.map(|(sign, path)| (path, sign)).collect() }
    }

    /// Says what was found.
    pub(super) fn end(self) -> Vec<String> {
        let changed = self.held.iter().filter(|(path, before)| sign(path) != Some(*before)).map(|(path, _)| {
            format!(
                "{} is protected, and something outside the sandbox changed it while the command ran",
                path.display()
            )
        });
        changed.collect()
    }
}

fn sign(path: &Path) -> Option<Sign> {
    let found = path.symlink_metadata().ok()?;
    Some((found.dev(), found.ino(), found.ctime(), found.ctime_nsec()))
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
