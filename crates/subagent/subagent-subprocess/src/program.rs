//! Which program a command is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use subprocess::{Environment, program};

use crate::Refused;

/// The program that `command` is, absolute. A name is looked for along `PATH`, but neither relative to a directory nor below
/// `root`: what a repository brings is not what an operator meant.
pub(crate) fn find(command: &OsString, env: &Environment, root: &Path) -> Result<PathBuf, Refused> {
    let named = Path::new(command);
    if named.is_absolute() {
        return Ok(named.to_owned());
    }
    let found = program(command, env.path(), root).filter(|_| named.components().count() == 1);
    found.ok_or_else(|| Refused::no_program(command))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_planted_one_does_not_count() {
        let world = tempfile::tempdir().unwrap();
        let top = world.path().canonicalize().unwrap();
        for dir in ["bin", "ws"] {
            fs::create_dir(top.join(dir)).unwrap();
            fs::write(top.join(dir).join("agent"), "#!/bin/sh\n").unwrap();
            fs::set_permissions(top.join(dir).join("agent"), Permissions::from_mode(0o755)).unwrap();
        }
        let path = |dirs: &[PathBuf]| Environment::default().with("PATH", std::env::join_paths(dirs).unwrap());
        let look = |name: &str, dirs: &[PathBuf]| find(&name.into(), &path(dirs), &top.join("ws"));
        let [bin, ws] = ["bin", "ws"].map(|dir| top.join(dir));
        assert_eq!(look("agent", &[".".into(), ws.clone(), bin.clone()]).unwrap(), bin.join("agent"));
        look("agent", &[ws]).unwrap_err();
        look("ws/agent", std::slice::from_ref(&top)).unwrap_err();
        look("other", &[bin]).unwrap_err();
        assert_eq!(look("/any/where", &[]).unwrap(), Path::new("/any/where"), "the operator's word");
    }
}
