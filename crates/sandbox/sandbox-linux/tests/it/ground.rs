//! Where yards are, and the program that attacks are written in: places that every user reaches, and that no command has
//! another thing in the place of.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// For a checkout that is in nobody else's reach.
const OTHERWISE: &str = "/var/tmp";

/// Where yards are made.
pub(crate) fn ground() -> PathBuf {
    let beside = Path::new(env!("CARGO_TARGET_TMPDIR"));
    if is_open(beside) { beside.to_owned() } else { OTHERWISE.into() }
}

/// This executable, or a copy of it.
pub(crate) fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(within_reach).clone()
}

fn within_reach() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    if is_open(&own) {
        return own;
    }
    let place = Path::new(OTHERWISE).join("tether-it");
    let _ = DirBuilder::new().mode(0o755).create(&place);
    let copy = place.join(own.file_name().unwrap());
    if !copy.exists() {
        // Of builds before this one; another process of this one may be at it.
        let is_finished = |old: &fs::DirEntry| old.file_name().to_string_lossy().contains('-');
        fs::read_dir(&place).unwrap().flatten().filter(is_finished).for_each(|old| drop(fs::remove_file(old.path())));
        let unfinished = place.join(format!("{}", std::process::id()));
        fs::copy(&own, &unfinished).unwrap();
        fs::set_permissions(&unfinished, Permissions::from_mode(0o755)).unwrap();
        fs::rename(&unfinished, &copy).unwrap();
    }
    copy
}

/// Whether everybody gets there, and commands with a `/tmp` of their own as well.
fn is_open(path: &Path) -> bool {
    let passes = |dir: &Path| dir.metadata().is_ok_and(|found| found.permissions().mode() & 0o001 != 0);
    !path.starts_with("/tmp") && path.ancestors().skip(1).all(passes)
}
