use std::fs;
use std::path::PathBuf;

use app_boot::{Boot, Config, Entry, Env, Flags};
use tempfile::TempDir;

/// Places of its own for a user and a project.
pub(crate) struct World {
    dir: TempDir,
    variables: Vec<(&'static str, String)>,
    flags: Flags,
}

pub(crate) const USERS: &str = "config/tether/config.toml";
pub(crate) const PROJECTS: &str = "project/.tether/config.toml";

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self { dir, variables: Vec::new(), flags: Flags::default() };
        fs::create_dir_all(world.path("project")).unwrap();
        world
    }

    /// With these files.
    pub(crate) fn of(user: &str, project: &str) -> Self {
        let world = Self::new();
        world.write(USERS, user);
        world.write(PROJECTS, project);
        world
    }

    pub(crate) fn set(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn boot(&self) -> Boot {
        let config = self.path("config");
        let own = [("HOME", self.path("user")), ("XDG_CONFIG_HOME", config)];
        let mut variables: Vec<_> = own.iter().map(|(name, path)| (*name, path.to_str().unwrap().to_owned())).collect();
        variables.extend(self.variables.iter().cloned());
        Boot::new(Env::of(&variables), None, None).unwrap()
    }

    /// The configuration, or everything that is wrong with it, without the directory's name.
    pub(crate) fn load(&self) -> Result<Config, Vec<String>> {
        let loaded = self.boot().configure(&self.path("project"), self.flags.clone());
        loaded.map_err(|errors| errors.iter().map(|error| self.normal(&error.to_string())).collect())
    }

    pub(crate) fn normal(&self, text: &str) -> String {
        text.replace(self.path("").to_str().unwrap(), "")
    }

    /// What `key` says, in one line: its value, whose it is, and what was narrowed.
    pub(crate) fn told(&self, key: &str) -> String {
        let entries = self.load().unwrap().entries();
        let entry = entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no `{key}`"));
        self.line(entry)
    }

    pub(crate) fn line(&self, Entry { value, from, narrowed_from, .. }: &Entry) -> String {
        let narrowed = narrowed_from.as_ref().map(|(value, from)| format!(" < {value} {from}")).unwrap_or_default();
        self.normal(&format!("{value} {from}{narrowed}"))
    }
}
