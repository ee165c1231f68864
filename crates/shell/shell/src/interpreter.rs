//! The program that reads command lines.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use subprocess::{Environment, program};

use crate::OpenError;

/// Where it usually is. The session's own directory is no place for it.
const USUAL: [&str; 3] = ["/bin", "/usr/bin", "/usr/local/bin"];

/// `bash`, or `sh` where there is none; one below `root` does not count.
pub(crate) fn interpreter(env: &Environment, root: &Path) -> Result<PathBuf, OpenError> {
    let dirs: Vec<PathBuf> = USUAL.iter().map(PathBuf::from).chain(env.path()).collect();
    search(&dirs, root).ok_or(OpenError::NoInterpreter)
}

fn search(dirs: &[PathBuf], root: &Path) -> Option<PathBuf> {
    ["bash", "sh"].iter().find_map(|name| program(name, dirs.iter().cloned(), root))
}

/// The whole invocation. What begins with `-` is a command line all the same.
pub(crate) fn invocation(interpreter: &Path, command: &str) -> Vec<OsString> {
    vec![interpreter.into(), "-c".into(), "--".into(), command.into()]
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_planted_one_does_not_count() {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().canonicalize().unwrap();
        for (name, mode) in [("bash", 0o644), ("sh", 0o755)] {
            fs::write(root.join(name), "#!/bin/sh\n").unwrap();
            fs::set_permissions(root.join(name), Permissions::from_mode(mode)).unwrap();
        }
        let dirs = [root.clone()];
        assert_eq!(search(&dirs, &root), None);
        assert_eq!(search(&dirs, Path::new("/no/such")), Some(root.join("sh")), "the other cannot be executed");
        fs::set_permissions(root.join("bash"), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(search(&dirs, Path::new("/")), Some(root.join("bash")), "everything is below `/`");
    }

    #[test]
    fn a_line_that_looks_like_an_option_is_none() {
        for shell in ["/bin/bash", "/bin/sh"].map(Path::new).into_iter().filter(|shell| shell.exists()) {
            let argv = invocation(shell, "-x; echo it runs");
            let said = std::process::Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout), "it runs\n", "{said:?}");
        }
    }
}
