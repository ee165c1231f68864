//! Looking for programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::Environment;

/// The first program of this name in one of these directories that is not below `root`, links followed: what a repository
/// brings is not what its reader meant. Below `/` is everything, so there it does not count.
pub fn program(name: impl AsRef<OsStr>, dirs: impl IntoIterator<Item = PathBuf>, root: &Path) -> Option<PathBuf> {
    let name = Path::new(name.as_ref());
    dirs.into_iter().map(|dir| dir.join(name)).find(|path| is_program(path) && !is_below(path, root))
}

impl Environment {
    /// The directories of `PATH`. Those that are relative to wherever somebody works are none.
    pub fn path(&self) -> impl Iterator<Item = PathBuf> {
        std::env::split_paths(self.get("PATH").unwrap_or_default()).filter(|dir| dir.is_absolute())
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn is_below(path: &Path, root: &Path) -> bool {
    root != Path::new("/") && path.canonicalize().is_ok_and(|path| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_planted_one_does_not_count() {
        let world = tempfile::tempdir().unwrap();
        let top = world.path().canonicalize().unwrap();
        let [bin, root, linked, late] = ["bin", "root", "linked", "late"].map(|dir| top.join(dir));
        for dir in [&bin, &root, &linked, &late] {
            fs::create_dir(dir).unwrap();
        }
        for (dir, mode) in [(&bin, 0o644), (&root, 0o755), (&late, 0o755)] {
            fs::write(dir.join("agent"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(dir.join("agent"), Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(top.join("agent")).unwrap();
        symlink(root.join("agent"), linked.join("agent")).unwrap();
        let all = [&top, &bin, &root, &linked, &late].map(PathBuf::clone);
        let found = |root: &Path| program("agent", all.clone(), root);
        assert_eq!(found(&root), Some(late.join("agent")), "a directory, no program, planted, led there");
        assert_eq!(found(Path::new("/no/such")), Some(root.join("agent")));
        assert_eq!(found(Path::new("/")), Some(root.join("agent")), "everything is below `/`");
        assert_eq!(program("other", all.clone(), &root), None);
    }

    #[test]
    fn where_somebody_works_is_no_place_for_programs() {
        let path = |value: &str| Environment::default().with("PATH", value).path().collect::<Vec<_>>();
        assert_eq!(path(".:/bin::sub:/usr/bin"), ["/bin", "/usr/bin"].map(PathBuf::from));
        assert_eq!(Environment::default().path().count(), 0);
    }
}
