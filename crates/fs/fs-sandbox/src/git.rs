//! What git is led to inside a root: by the root's repository with its worktrees and submodules, by those that the root is
//! a part of, by the person's own configuration. Git is not run for this: its files are read, forgivingly, and a condition
//! counts as met.
//!
//! They are read anew at each look, and nothing is kept: a time of change does not tell two changes within a few
//! milliseconds apart, and reading takes less time than one write. What a look may cost is bounded, and so is what it
//! finds; beyond that, nothing in the root is written.

mod command;
mod configs;
mod files;
mod places;
mod repositories;
mod settings;
mod user;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use sandbox::{Extent, ProtectionSource, Protections};

use crate::asked::lexical;
use configs::{Configs, MAX_CONFIGS};
use files::is_missing;
use places::Places;
use repositories::{MAX_DEPTH, Repository, repositories};
use settings::Setting;

pub use user::GitUser;

/// Finds the places that git is led to where commands may write, and its directories there.
pub(crate) struct Git {
    /// Canonical.
    pub(crate) root: PathBuf,
    /// What else may be written, canonical.
    pub(crate) temp: Option<PathBuf>,
    pub(crate) user: GitUser,
    /// How many paths may be found.
    pub(crate) room: usize,
}

/// Why it cannot be told what git would run.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(
        "it leads to {count} places in this workspace, and at most {room} can be protected beside those that always are"
    )]
    TooMany { count: usize, room: usize },
    #[error("it leads along more names than are followed")]
    TooFar,
    #[error("{} leads along more names than are followed", .path.display())]
    TooLongAWay { path: PathBuf },
    #[error("its submodules lie more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("it is spread over more than {MAX_CONFIGS} files, {} among them", .first_unread.display())]
    TooManyConfigs { first_unread: PathBuf },
    #[error("{} is longer than is read of it", .path.display())]
    TooLong { path: PathBuf },
    #[error("{} cannot be read: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("it names the home of {name:?}, who is not in /etc/passwd")]
    NobodyHere { name: String },
}

impl ProtectionSource for Git {
    fn find(&self) -> Result<Protections, String> {
        self.look().map_err(|unread| {
            format!("git's configuration cannot be followed, so nothing in this workspace is written: {unread}")
        })
    }
}

impl Git {
    fn look(&self) -> Result<Protections, Unread> {
        let mut look = Look { places: Places::of(self), configs: Configs::default(), home: self.user.home.as_deref() };
        let theirs = look.persons(&self.user.configs)?;
        for repository in repositories(&mut look, &self.root)? {
            look.repository(repository, &theirs)?;
        }
        look.places.protections(self)
    }
}

/// One look.
struct Look<'a> {
    places: Places,
    configs: Configs,
    home: Option<&'a Path>,
}

impl Look<'_> {
    /// What a person's own configuration says.
    fn persons(&mut self, configs: &[PathBuf]) -> Result<Vec<Setting>, Unread> {
        let mut readable = Vec::new();
        for config in configs {
            // Git passes over one of these that it may not read. From inside that could be undone.
            if !is_closed(config) || self.places.led(config, Extent::File)? && self.places.leads_inside(config)? {
                readable.push(config.clone());
            }
        }
        self.settings(readable)
    }

    /// What these files say, with those that they include.
    fn settings(&mut self, files: Vec<PathBuf>) -> Result<Vec<Setting>, Unread> {
        self.configs.settings(files, self.home, &mut self.places)
    }

    fn repository(&mut self, repository: Repository, theirs: &[Setting]) -> Result<(), Unread> {
        let own = self.settings(repository.configs)?;
        let mut tops = BTreeSet::from_iter(repository.tops);
        for setting in &own {
            if let Setting::Top(top) = setting
                && tops.insert(top.clone())
            {
                // What leads from there to the repository.
                self.places.led_if_there(&top.join(".git"))?;
            }
        }
        let mut words = BTreeSet::new();
        for setting in own.iter().chain(theirs) {
            match setting {
                Setting::Hooks(hooks) => tops.iter().try_for_each(|top| self.hooks(top, hooks))?,
                Setting::Template(template) => {
                    tops.iter().try_for_each(|top| self.places.led(&top.join(template), Extent::Tree).map(drop))?;
                }
                Setting::Command(line) => words.extend(command::words(line)),
                Setting::Top(_) | Setting::Include(_) => {}
            }
        }
        for (word, top) in words.iter().flat_map(|word| tops.iter().map(move |top| (word, top))) {
            command::files(word, top, self.home).try_for_each(|file| self.places.led_if_there(&file))?;
        }
        Ok(())
    }

    /// A directory of hooks, each of which may be a link.
    fn hooks(&mut self, top: &Path, directory: &Path) -> Result<(), Unread> {
        let directory = &top.join(directory);
        if !self.places.is_new(directory) {
            return Ok(());
        }
        let is_open = self.places.led(directory, Extent::Tree)?;
        // Husky keeps there what calls the hooks beside it.
        if directory.file_name().is_some_and(|name| name == "_")
            && let Some(beside) = directory.parent().map(lexical)
            && !top.starts_with(&beside)
        {
            self.places.led(&beside, Extent::Tree)?;
        }
        if !is_open {
            return Ok(());
        }
        let failed = |source| Unread::Io { path: directory.to_owned(), source };
        let hooks = match directory.read_dir() {
            Ok(hooks) => hooks,
            Err(error) if leads_nowhere(&error) => return Ok(()),
            // What is closed from outside, nobody of this user's gets to.
            Err(error) if is_denied(&error) && !self.places.leads_inside(directory)? => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for hook in hooks {
            let hook = hook.map_err(failed)?;
            self.places.step()?;
            if hook.file_type().map_err(failed)?.is_symlink() {
                self.places.led(&hook.path(), Extent::File)?;
            }
        }
        Ok(())
    }
}

/// Whether what is there may not be read.
fn is_closed(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    access(path, Access::READ_OK) == Err(Errno::ACCESS)
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Whether nobody gets anywhere by a path. Of a ring of links all are known.
fn leads_nowhere(error: &io::Error) -> bool {
    is_missing(error) || Errno::from_io_error(error) == Some(Errno::LOOP)
}
