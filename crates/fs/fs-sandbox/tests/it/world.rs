//! A workspace with an outside, on a real file system, and a fence around it.

use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::Scope;
use fs::{FsError, Why};
use fs_sandbox::{Fence, Fences, GitUser, OpenError};
use sandbox::{Mode, ModeSource, Operation, Workspace};
use tokio::runtime::Runtime;

pub(crate) const CONFINING: [Mode; 2] = [Mode::ReadOnly, Mode::WorkspaceWrite];

/// `ws` is the root, `ws/.home` or `home` is Tether's, `temp` the session's, `person` where somebody is at home,
/// `outside` anybody's.
pub(crate) struct World {
    pub(crate) top: PathBuf,
    pub(crate) fences: Fences,
    pub(crate) mode: Arc<Switch>,
    scope: Mutex<Option<Scope>>,
    runtime: Runtime,
    _dir: tempfile::TempDir,
}

/// Where Tether's home is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    Beside,
    InsideRoot,
}

pub(crate) struct Switch(AtomicUsize);

impl Switch {
    pub(crate) fn set(&self, mode: Mode) {
        self.0.store(mode as usize, Ordering::SeqCst);
    }
}

impl ModeSource for Switch {
    fn mode(&self) -> Mode {
        Mode::ALL[self.0.load(Ordering::SeqCst)]
    }
}

/// Everything below a directory: what it is, what it holds, when that last changed.
pub(crate) type Picture = BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)>;

impl World {
    pub(crate) fn new(mode: Mode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for path in ["ws/sub", "ws/.git/hooks", "outside", "home/sessions", "temp", "ws/.home/sessions"] {
            std::fs::create_dir_all(top.join(path)).unwrap();
        }
        for (path, text) in [
            ("ws/file.txt", "inside"),
            ("ws/sub/deep.txt", "deep"),
            ("ws/.git/HEAD", "ref: refs/heads/main"),
            ("ws/.git/config", "[core]"),
            ("ws/.home/sessions/other.jsonl", "{}"),
            ("outside/secret.txt", "secret"),
            ("home/sessions/other.jsonl", "{}"),
        ] {
            std::fs::write(top.join(path), text).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let scope = runtime.block_on(async { Scope::root("agent") });
        let mode = Arc::new(Switch(AtomicUsize::new(mode as usize)));
        let person = top.join("person");
        let fences = Fences::for_user(GitUser { configs: vec![person.join(".gitconfig")], home: Some(person) });
        Self { top, fences, mode, scope: Mutex::new(Some(scope)), runtime, _dir: dir }
    }

    pub(crate) fn workspace(&self, home: Home) -> Workspace {
        let home = match home {
            Home::Beside => "home",
            Home::InsideRoot => "ws/.home",
        };
        Workspace::new(self.at("ws")).temp(self.at("temp")).home(self.at(home)).protect("ci/deploy.sh")
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence_around(self.workspace(Home::Beside))
    }

    pub(crate) fn fence_around(&self, workspace: Workspace) -> Fence {
        self.open(workspace).unwrap()
    }

    pub(crate) fn open(&self, workspace: Workspace) -> Result<Fence, OpenError> {
        let ctx = (**self.scope.lock().unwrap().as_ref().expect("not closed")).clone();
        self.fences.open(workspace, self.mode.clone(), ctx)
    }

    pub(crate) fn close(&self) {
        let scope = self.scope.lock().unwrap().take().expect("closed once");
        self.run(async { scope.close().await.unwrap() });
    }

    /// Runs to the end, which comes soon.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let deadline = Duration::from_secs(60);
        self.runtime.block_on(async { tokio::time::timeout(deadline, work).await.expect("in time") })
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).unwrap()
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) {
        symlink(target, self.at(path)).unwrap();
    }

    pub(crate) fn picture(&self, path: &str) -> Picture {
        let mut all = Picture::new();
        picture(&self.at(path), &mut all);
        all
    }
}

fn picture(path: &Path, all: &mut Picture) {
    let meta = path.symlink_metadata().unwrap();
    let content = if meta.is_file() {
        std::fs::read(path).unwrap()
    } else if meta.is_symlink() {
        std::fs::read_link(path).unwrap().into_os_string().into_encoded_bytes()
    } else {
        Vec::new()
    };
    all.insert(path.to_owned(), (meta.mode(), meta.mtime(), meta.mtime_nsec(), content));
    if meta.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            picture(&entry.unwrap().path(), all);
        }
    }
}

/// How a refusal came, for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Done,
    Denied(Why),
    NotFound,
    IsADirectory,
    NotADirectory,
    NotAFile,
    InvalidPath,
    Changed,
    Other,
}

pub(crate) fn how<T>(result: &Result<T, FsError>) -> How {
    match result {
        Ok(_) => How::Done,
        Err(FsError::Denied(_, why)) => How::Denied(*why),
        Err(FsError::NotFound(_)) => How::NotFound,
        Err(FsError::IsADirectory(_)) => How::IsADirectory,
        Err(FsError::NotADirectory(_)) => How::NotADirectory,
        Err(FsError::NotAFile { .. }) => How::NotAFile,
        Err(FsError::InvalidPath { .. }) => How::InvalidPath,
        Err(FsError::Changed(_)) => How::Changed,
        Err(_) => How::Other,
    }
}

/// The first line of a denial of a write or an edit.
pub(crate) fn first_line(operation: Operation, target: &Path, mode: Mode) -> String {
    format!("sandbox denied: {operation} {} (mode {mode})", target.display())
}
