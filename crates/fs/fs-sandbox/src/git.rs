//! What git is led to inside a root: by the root's repository, by one that the root is a part of, by the person's own
//! configuration. Git is not run for this: its files are read, forgivingly, and a condition counts as met.
//!
//! They are read anew at each look, and nothing is kept: a time of change does not tell two changes within a few
//! milliseconds apart, and reading takes less time than one write.

mod files;
mod settings;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use sandbox::{Extent, Protected, ProtectionSource, Protections};

use crate::asked::lexical;
use crate::lands::lands;
use files::{Room, is_file, is_missing};
use settings::{Setting, settings};

pub use user::GitUser;

/// How many configuration files are read, with those that they include.
const MAX_CONFIGS: usize = 64;

/// How many settings and links are looked at.
const MAX_LOOKS: usize = 4096;

/// Finds the places inside a root that git is led to, and its directories there.
pub(crate) struct Git {
    /// Canonical.
    pub(crate) root: PathBuf,
    pub(crate) user: GitUser,
    /// How many paths may be found.
    pub(crate) room: usize,
}

/// Why it cannot be told what git would run.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("it leads to {count} paths or more, and at most {room} can be protected beside those that always are")]
    TooMany { count: usize, room: usize },
    #[error("it is spread over more than {MAX_CONFIGS} files, {} among them", .first_unread.display())]
    TooManyConfigs { first_unread: PathBuf },
    #[error("{} is longer than is read of it", .path.display())]
    TooLong { path: PathBuf },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl ProtectionSource for Git {
    fn find(&self) -> Result<Protections, String> {
        let search = Search {
            git: self,
            bytes: Room::whole(),
            found: BTreeMap::new(),
            directories: BTreeSet::new(),
            tops: Vec::new(),
            hooks: Vec::new(),
            configs: Vec::new(),
            looks: 0,
        };
        search.run().map_err(|unread| {
            format!("git's configuration cannot be followed, so nothing in this workspace is written: {unread}")
        })
    }
}

struct Search<'a> {
    git: &'a Git,
    bytes: Room,
    found: BTreeMap<PathBuf, Extent>,
    /// Where repositories are kept inside the root, beside its `.git`.
    directories: BTreeSet<PathBuf>,
    /// What hooks are relative to.
    tops: Vec<PathBuf>,
    hooks: Vec<PathBuf>,
    configs: Vec<PathBuf>,
    looks: usize,
}

impl Search<'_> {
    fn run(mut self) -> Result<Protections, Unread> {
        self.repositories()?;
        for path in &self.git.user.configs {
            // Git passes over one of these that it may not read.
            if access(path, Access::READ_OK) != Err(Errno::ACCESS) {
                self.config(path.clone())?;
            }
        }
        let mut next = 0;
        while let Some(config) = self.configs.get(next).cloned() {
            next += 1;
            let beside = config.parent().unwrap_or(&self.git.root);
            for setting in settings(&self.bytes.content(&config)?) {
                match setting {
                    Setting::Hooks(path) => self.hooks.extend(self.expanded(path)),
                    Setting::Top(path) => self.tops.push(beside.join(path)),
                    Setting::Include(path) => {
                        if let Some(path) = self.expanded(path) {
                            self.config(beside.join(path))?;
                        }
                    }
                }
            }
        }
        let (tops, hooks) = (take(&mut self.tops), take(&mut self.hooks));
        for top in &tops {
            for hooks in &hooks {
                self.hooks(&top.join(hooks))?;
            }
        }
        self.protections()
    }

    /// The root's repository and, where it has none, that of the first directory above it that has one.
    fn repositories(&mut self) -> Result<(), Unread> {
        let root = &self.git.root;
        self.tops.push(root.clone());
        for top in root.ancestors() {
            let git = top.join(".git");
            match git.metadata() {
                Ok(found) if found.is_dir() => {
                    // Without a `HEAD` it is none to git, which goes on above.
                    let is_repository = git.join("HEAD").symlink_metadata().is_ok();
                    if is_repository || top == root {
                        self.repository(top, &git)?;
                    }
                    if is_repository {
                        return Ok(());
                    }
                }
                Ok(found) if found.is_file() => {
                    if let Some(elsewhere) = self.bytes.git_file(&git)? {
                        self.repository(top, &top.join(elsewhere))?;
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn repository(&mut self, top: &Path, git: &Path) -> Result<(), Unread> {
        self.tops.push(top.to_owned());
        self.directory(git)?;
        match self.bytes.common_dir(&git.join("commondir"))? {
            Some(common) => self.directory(&git.join(common)),
            None => Ok(()),
        }
    }

    /// A directory that git keeps a repository in, or what worktrees of it have of their own.
    fn directory(&mut self, git: &Path) -> Result<(), Unread> {
        self.look()?;
        let own = self.git.root.join(".git");
        for place in places(git).filter(|place| place.starts_with(&self.git.root) && *place != own) {
            self.directories.insert(place);
        }
        self.hooks(&git.join("hooks"))?;
        ["config", "config.worktree"].into_iter().try_for_each(|name| self.config(git.join(name)))
    }

    fn config(&mut self, path: PathBuf) -> Result<(), Unread> {
        self.led(&path, Extent::File)?;
        let is_file = is_file(&path).map_err(|source| Unread::Io { path: path.clone(), source })?;
        if !is_file || self.configs.contains(&path) {
            return Ok(());
        }
        if self.configs.len() == MAX_CONFIGS {
            // What is not read may name hooks.
            return Err(Unread::TooManyConfigs { first_unread: path });
        }
        self.configs.push(path);
        Ok(())
    }

    /// A directory of hooks, each of which may be a link.
    fn hooks(&mut self, directory: &Path) -> Result<(), Unread> {
        self.led(directory, Extent::Tree)?;
        let failed = |source| Unread::Io { path: directory.to_owned(), source };
        let hooks = match directory.read_dir() {
            Ok(hooks) => hooks,
            // Through what is closed nobody of this user's gets to a hook.
            Err(error) if is_missing(&error) || directory.metadata().is_err() => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for hook in hooks {
            let hook = hook.map_err(failed)?;
            self.look()?;
            if hook.file_type().map_err(failed)?.is_symlink() {
                self.led(&hook.path(), Extent::File)?;
            }
        }
        Ok(())
    }

    /// A place that git goes to, as what it is there for.
    fn led(&mut self, path: &Path, sought: Extent) -> Result<(), Unread> {
        self.look()?;
        for place in places(path).filter(|place| place.starts_with(&self.git.root)) {
            if sought != Extent::File || !place.is_dir() {
                self.found.entry(place).or_insert(sought);
            }
        }
        Ok(())
    }

    fn look(&mut self) -> Result<(), Unread> {
        self.looks += 1;
        if self.looks > MAX_LOOKS { Err(self.too_many(self.looks)) } else { Ok(()) }
    }

    /// A place as a setting names it. `None` where nobody here is at home.
    fn expanded(&self, path: PathBuf) -> Option<PathBuf> {
        match path.strip_prefix("~") {
            Ok(below) => Some(self.git.user.home.as_ref()?.join(below)),
            Err(_) => Some(path),
        }
    }

    fn protections(self) -> Result<Protections, Unread> {
        let mut all = Protections::default();
        all.git_directory(&self.git.root.join(".git"));
        let always = all.protected.len();
        self.directories.iter().for_each(|git| all.git_directory(git));
        let known = all.protected.clone();
        let is_held = |path: &Path| known.iter().any(|it| it.extent != Extent::Entry && path.starts_with(&it.path));
        let led = self.found.iter().filter(|(path, _)| !is_held(path));
        all.protected.extend(led.map(|(path, extent)| Protected { path: path.clone(), extent: *extent }));
        // The root's own is protected by whoever asks.
        all.protected.drain(..always);
        match all.protected.len() {
            count if count > self.git.room => Err(self.too_many(count)),
            _ => Ok(all),
        }
    }

    fn too_many(&self, count: usize) -> Unread {
        Unread::TooMany { count, room: self.git.room }
    }
}

/// Where a path leads, and where it would by its text.
fn places(path: &Path) -> impl Iterator<Item = PathBuf> {
    lands(path).into_iter().chain([lexical(path)])
}
