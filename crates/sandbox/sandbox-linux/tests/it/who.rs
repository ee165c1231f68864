//! Whom a command runs as.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::ground::ground;

const AS: &str = "__it-as";
const NOBODY: u32 = 65_534;
/// Where a user who may not write beside what is built makes yards.
pub(crate) const PLACE: &str = "IT_PLACE";

/// The user that the helper and its command run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Whoever runs the tests.
    Self_,
    /// An ordinary user, if root runs the tests.
    Nobody,
}

impl Who {
    /// All that can be had here.
    pub(crate) fn all() -> &'static [Self] {
        if geteuid().is_root() { &[Self::Self_, Self::Nobody] } else { &[Self::Self_] }
    }

    pub(crate) fn is_root(self) -> bool {
        self == Self::Self_ && geteuid().is_root()
    }

    /// Makes a command run as this user, in no other group.
    pub(crate) fn apply(self, command: &mut Command) -> &mut Command {
        match self {
            Self::Self_ => command,
            Self::Nobody => command.uid(NOBODY).gid(NOBODY),
        }
    }

    /// The arguments that make this executable step down and go on with `args`.
    pub(crate) fn step_down(self, args: Vec<OsString>) -> Vec<OsString> {
        match self {
            Self::Self_ => args,
            Self::Nobody => [AS.into()].into_iter().chain(args).collect(),
        }
    }

    /// Hands a tree over to this user.
    pub(crate) fn own(self, path: &Path) {
        if self == Self::Nobody {
            let owner = Some(NOBODY);
            std::os::unix::fs::lchown(path, owner, owner).unwrap();
            if path.symlink_metadata().unwrap().is_dir() {
                std::fs::read_dir(path).unwrap().for_each(|entry| self.own(&entry.unwrap().path()));
            }
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.is_root() { "root" } else { "an ordinary user" })
    }
}

/// Runs one of these tests as an ordinary user, if it is root that runs it.
#[track_caller]
pub(crate) fn again_as_an_ordinary_user(test: &str) {
    if !geteuid().is_root() {
        return;
    }
    let args = Who::Nobody.step_down(vec!["--exact".into(), test.into(), "--nocapture".into()]);
    let mut command = Command::new(std::env::current_exe().unwrap());
    let place = tempfile::tempdir_in(ground()).unwrap();
    Who::Nobody.own(place.path());
    let output = command.args(args).env("HOME", "/").env(PLACE, place.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
}

/// Executes this program anew as an ordinary user. Its descriptors stay.
pub(crate) fn step_down_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == AS) {
        let mut command = Command::new("/proc/self/exe");
        panic!("{}", Who::Nobody.apply(command.args(args)).exec());
    }
}
