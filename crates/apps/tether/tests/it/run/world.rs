use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::logs::Log;
use super::process::{Ran, Running};

/// A user's directories: `area/root` is the workspace, and `area` is what must not be touched.
pub(crate) struct World {
    _dir: TempDir,
    base: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// Outside of `/tmp`, in whose place commands have another.
    pub(crate) fn beside_tmp() -> Self {
        Self::of(tempfile::tempdir_in("/var/tmp").unwrap())
    }

    fn of(dir: TempDir) -> Self {
        let base = dir.path().canonicalize().unwrap();
        for below in ["area/root", "config/tether", "user"] {
            fs::create_dir_all(base.join(below)).unwrap();
        }
        Self { _dir: dir, base }
    }

    /// Below everything.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    pub(crate) fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.base.join(below)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path("area/root")
    }

    pub(crate) fn log_path(&self, id: &str) -> PathBuf {
        self.path(format!("home/sessions/{id}.jsonl"))
    }

    /// Writes a file below everything, with its directories.
    pub(crate) fn write(&self, below: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// The user's configuration.
    pub(crate) fn config(&self, text: &str) {
        self.write("config/tether/config.toml", text);
    }

    /// A command with nothing of the environment that the tests run in.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tether"));
        command.args(args);
        self.surround(&mut command);
        command
    }

    /// Gives any command this world's environment.
    pub(crate) fn surround(&self, command: &mut Command) {
        command.current_dir(self.root()).env_clear().env("TZ", "UTC");
        command.env("TETHER_HOME", self.path("home")).env("HOME", self.path("user"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
    }

    /// Runs `tether` to its end, with nothing to read.
    pub(crate) fn tether<A: AsRef<OsStr>>(&self, args: &[A]) -> Ran {
        Ran::of(self.command(args))
    }

    /// Runs `tether` to its end, with this to read.
    pub(crate) fn fed<A: AsRef<OsStr>>(&self, args: &[A], stdin: impl Into<Vec<u8>>) -> Ran {
        Ran::fed(self.command(args), stdin)
    }

    /// Starts `tether` and goes on.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, args: &[A]) -> Running {
        Running::start(self.command(args))
    }

    /// Every log, by its session.
    pub(crate) fn logs(&self) -> BTreeMap<String, Log> {
        let names = self.kept();
        let ids = names.iter().filter_map(|name| name.strip_suffix(".jsonl"));
        ids.map(|id| (id.to_owned(), Log::read(&self.log_path(id)))).collect()
    }

    /// The names of the files that the store keeps.
    pub(crate) fn kept(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("home/sessions")) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Every file below a directory and what it holds; a directory holds nothing, and a link what it points to.
    pub(crate) fn files(&self, below: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut files, top) = (BTreeMap::new(), self.path(below));
        let mut left = vec![top.clone()];
        while let Some(dir) = left.pop() {
            let Ok(entries) = fs::read_dir(dir) else { continue };
            for entry in entries.map(Result::unwrap) {
                let path = entry.path();
                let kind = entry.file_type().unwrap();
                let is_dir = kind.is_dir();
                let content = match (is_dir, kind.is_symlink()) {
                    (true, _) => Vec::new(),
                    (false, true) => fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(),
                    (false, false) => fs::read(&path).unwrap(),
                };
                files.insert(path.strip_prefix(&top).unwrap().to_owned(), content);
                if is_dir {
                    left.push(path);
                }
            }
        }
        files
    }
}
