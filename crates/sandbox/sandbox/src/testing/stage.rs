//! A workspace for one check, with everything around it that a command is to be kept from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::fixture::{Ended, Fixture, How, Running};
use super::probe::PROBE;
use crate::{CannotConfine, CommandLine, Confinement, Enforcement, Mode, Network, SandboxProvider, Temp, Workspace};

/// What no command may read.
pub(super) const SECRET: &str = "a-secret-of-the-harness";

/// How long a command may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// The variable by which a command's processes are found.
const MARK: &str = "SANDBOX_CONTRACT";

pub(super) struct Stage {
    fixture: Arc<dyn Fixture>,
    pub(super) provider: Arc<dyn SandboxProvider>,
    pub(super) root: PathBuf,
    pub(super) temp: PathBuf,
    pub(super) outside: PathBuf,
    pub(super) home: PathBuf,
    _dir: TempDir,
}

impl Stage {
    pub(super) fn new(fixture: Arc<dyn Fixture>, provider: Arc<dyn SandboxProvider>) -> Self {
        let dir =
            tempfile::Builder::new().prefix("contract-").tempdir_in(fixture.place()).expect("a place is a directory");
        let base = dir.path().canonicalize().expect("it was just made");
        let is_word = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        assert!(base.to_str().is_some_and(|path| path.chars().all(is_word)), "scripts take no such path: {base:?}");
        let [root, temp, outside, home] = ["workspace", "temp", "outside", "home"].map(|name| base.join(name));
        for made in ["src/deep", "kept", ".git/hooks", ".git/objects", ".git/refs"] {
            fs::create_dir_all(root.join(made)).expect("the suite may write");
        }
        for made in [&temp, &outside.join("dir"), &home] {
            fs::create_dir_all(made).expect("the suite may write");
        }
        let files = [
            (root.join("src/a.txt"), "a\n"),
            (root.join("kept/file"), "kept\n"),
            (root.join(".git/HEAD"), "ref: refs/heads/main\n"),
            (root.join(".git/config"), "[core]\n"),
            (root.join(".git/hooks/sample"), "#!/bin/sh\n"),
            (outside.join("file"), "outside\n"),
            (outside.join("dir/file"), "outside\n"),
            (home.join("log"), SECRET),
        ];
        files.iter().for_each(|(path, text)| fs::write(path, text).expect("the suite may write"));
        Self { fixture, provider, root, temp, outside, home, _dir: dir }
    }

    pub(super) fn powerless(&self) -> Option<Arc<dyn SandboxProvider>> {
        self.fixture.powerless()
    }

    /// Whether everything is held, and not only most.
    pub(super) fn is_full(&self) -> bool {
        self.provider.enforcement() == Enforcement::Full
    }

    pub(super) fn workspace(&self) -> Workspace {
        Workspace::new(&self.root).temp(&self.temp).home(&self.home).protect("kept")
    }

    pub(super) fn confinement(&self, mode: Mode) -> Confinement {
        let boundary = self.workspace().boundary(mode);
        Confinement { boundary, network: Network::Denied, temp: Temp::Private(self.temp.clone()) }
    }

    /// The suite's variables, and where the command's temporary directory is.
    fn environment(&self, temp: &Path) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        vec![
            ("PATH".into(), path),
            ("TMPDIR".into(), temp.into()),
            ("ROOT".into(), self.root.clone().into()),
            ("OUTSIDE".into(), self.outside.clone().into()),
            ("OWN".into(), self.home.clone().into()),
            ("TEMP".into(), self.temp.clone().into()),
            (MARK.into(), self.root.clone().into()),
        ]
    }

    /// Starts a command with `more` in its environment.
    pub(super) fn start(
        &self,
        confinement: &Confinement,
        argv: &[OsString],
        cwd: &Path,
        more: &[(OsString, OsString)],
    ) -> Result<Box<dyn Running>, CannotConfine> {
        let launch = self.provider.confine(&CommandLine { argv, cwd }, confinement)?;
        let env = [self.environment(&launch.temp), more.to_vec()].concat();
        Ok(self.fixture.start(launch, cwd, &env))
    }

    /// Runs a command in the root, to its end.
    #[track_caller]
    pub(super) fn run(&self, confinement: &Confinement, argv: &[OsString]) -> Ended {
        let running = self.start(confinement, argv, &self.root, &[]);
        running.unwrap_or_else(|cannot| panic!("what it can hold was refused: {cannot}")).end()
    }

    /// The same with a line of `sh`.
    #[track_caller]
    pub(super) fn sh(&self, mode: Mode, script: &str) -> Ended {
        self.run(&self.confinement(mode), &sh(script))
    }

    /// The probe, asked something.
    pub(super) fn probe(&self, asked: &[&str]) -> Vec<OsString> {
        let before = [self.fixture.probe().into_os_string(), PROBE.into()];
        before.into_iter().chain(asked.iter().map(OsString::from)).collect()
    }

    /// What is on the disk, but for the workspace and its temporary directory.
    pub(super) fn around(&self) -> Tree {
        Tree::of([self.outside.as_path(), &self.home])
    }

    /// What is on the disk of what is protected.
    pub(super) fn protected(&self) -> Tree {
        let all = self.confinement(Mode::WorkspaceWrite).boundary;
        let whole = all.protected().iter().filter(|it| it.extent != crate::Extent::Entry);
        Tree::of(whole.map(|it| it.path.as_path()))
    }

    /// The processes of this stage's commands.
    pub(super) fn processes(&self) -> Vec<u32> {
        let mark = [MARK.as_bytes(), b"=", self.root.as_os_str().as_bytes()].concat();
        let all = fs::read_dir("/proc").expect("the process table can be read");
        let pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_marked = |pid: &u32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark)
        };
        pids.filter(is_marked).collect()
    }
}

/// A line of `sh`. It ends where a variable is missing, or it would do to `/` what it was to do to a directory of the suite's.
pub(super) fn sh(script: &str) -> Vec<OsString> {
    ["sh", "-uc", script].map(OsString::from).to_vec()
}

/// Waits until a command has made a file.
#[track_caller]
pub(super) fn until_there(path: &Path) {
    let over = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < over, "a command did not come to write {}", path.display());
        sleep(Duration::from_millis(5));
    }
}

/// What a provider with a bug has left is not left by the suite.
impl Drop for Stage {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
    }
}

impl Ended {
    #[track_caller]
    pub(super) fn exited(self, code: i32) -> String {
        assert_eq!(self.how, How::Exited(code), "it said: {}", self.output);
        self.output
    }
}

/// Names, kinds, permissions and contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree(BTreeMap<PathBuf, String>);

impl Tree {
    /// What is at and below these.
    pub(super) fn of<'a>(tops: impl IntoIterator<Item = &'a Path>) -> Self {
        let (mut all, mut ahead) = (BTreeMap::new(), tops.into_iter().map(Path::to_owned).collect::<Vec<_>>());
        while let Some(path) = ahead.pop() {
            let Ok(found) = path.symlink_metadata() else { continue };
            let content = match found.file_type() {
                kind if kind.is_dir() => {
                    let below = fs::read_dir(&path).expect("the suite may read");
                    ahead.extend(below.flatten().map(|entry| entry.path()));
                    String::new()
                }
                kind if kind.is_symlink() => format!("to {:?}", fs::read_link(&path).ok()),
                kind if kind.is_file() => {
                    format!("with {:?}", String::from_utf8_lossy(&fs::read(&path).expect("the suite may read")))
                }
                kind => format!("{kind:?}"),
            };
            all.insert(path, format!("{:o} {content}", found.permissions().mode()));
        }
        Self(all)
    }

    /// Nothing is other than it was.
    #[track_caller]
    pub(super) fn is_as(&self, before: &Self, what: &str) {
        let gone = before.0.iter().filter(|(path, was)| self.0.get(*path) != Some(was));
        let gone = gone.map(|(path, was)| {
            format!("{} was {was} and is {}", path.display(), self.0.get(path).map_or("gone", String::as_str))
        });
        let new = self.0.keys().filter(|path| !before.0.contains_key(*path));
        let changed: Vec<_> = gone.chain(new.map(|path| format!("{} is new", path.display()))).collect();
        assert!(changed.is_empty(), "{what} changed: {}", changed.join("; "));
    }
}
