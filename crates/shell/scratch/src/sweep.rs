//! What killed processes left behind.

use std::ffi::CString;
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

use crate::held::{Orphan, is_ours};

/// How many names are looked at, and how many of what they name is removed.
const NAMES: usize = 100_000;
const ORPHANS: usize = 1_000;

/// Removes what is ours in `place` and nobody holds, as long as it `goes_on`: asked before each thing that is removed.
pub(crate) fn sweep(place: &Path, mut goes_on: impl FnMut() -> bool) {
    let Ok(above) = openat(CWD, place, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let Ok(entries) = Dir::read_from(&above) else { return };
    let names = entries.take(NAMES).map_while(Result::ok).map(|entry| entry.file_name().to_owned());
    let ours: Vec<CString> = names.filter(|name| is_ours(name)).collect();
    let mut removed = 0;
    for name in ours {
        if !goes_on() || removed == ORPHANS {
            return;
        }
        let Some(orphan) = Orphan::take(&above, &name) else { continue };
        removed += 1;
        if let Err(error) = orphan.remove(&above, &name, &mut goes_on) {
            tracing::debug!(?name, %error, "a temporary directory of a dead process is not wholly removed");
        }
    }
}
