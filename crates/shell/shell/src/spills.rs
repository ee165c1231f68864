//! The files that long output was written to.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use subprocess::SpillTo;

/// How many of them are kept; the oldest goes first.
const KEPT: usize = 16;

/// The most bytes of one.
const MOST: u64 = 32 * 1024 * 1024;

/// Keeps the last ones of a session.
pub(crate) struct Spills {
    dir: PathBuf,
    kept: Mutex<VecDeque<PathBuf>>,
}

impl Spills {
    pub(crate) fn into(dir: PathBuf) -> Self {
        Self { dir, kept: Mutex::default() }
    }

    /// Where the next one goes.
    pub(crate) fn next(&self) -> SpillTo {
        SpillTo { dir: self.dir.clone(), most: MOST }
    }

    /// One more was written.
    pub(crate) fn keep(&self, spilled: &Path) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(spilled.to_owned());
        let old = if kept.len() > KEPT { kept.pop_front() } else { None };
        drop(kept);
        if let Some(old) = old {
            // It may be gone already.
            let _ = std::fs::remove_file(old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let spills = Spills::into(dir.path().into());
        let files: Vec<_> = (0..KEPT + 3).map(|n| dir.path().join(n.to_string())).collect();
        for file in &files {
            std::fs::write(file, "x").unwrap();
            spills.keep(file);
        }
        let left: Vec<bool> = files.iter().map(|file| file.exists()).collect();
        assert_eq!(left, [vec![false; 3], vec![true; KEPT]].concat());
    }
}
