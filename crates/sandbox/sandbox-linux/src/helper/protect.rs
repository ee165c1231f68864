//! Which mounts hold the protected paths, and which names have to be there for it.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::stage::{SetUp, Stage};
use crate::plan::{Files, Plan, Reach, Tier};

mod config;

const STAGE: &str = "protected path";

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// A path that is mounted over itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) path: PathBuf,
    pub(crate) hold: Hold,
}

/// What a mount over itself holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hold {
    /// The name is not renamed, replaced or removed.
    Name,
    /// Nor does anything below it change.
    Whole,
}

/// Something that is put where nothing is, so that it can be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placeholder {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// What a placeholder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    /// What git takes for its own directory, as it would without, unless its configuration says where its files are. An empty
    /// one it does not take.
    CommonDir,
}

/// What stands in a placeholder of [`Kind::CommonDir`].
pub(super) const COMMON_DIR: &[u8] = b".\n";

/// What is to be done for the protected paths of a plan.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    binds: BTreeMap<PathBuf, Hold>,
    pub(crate) placeholders: Vec<Placeholder>,
}

impl Layout {
    /// Looks at the host's files as they are now.
    pub(crate) fn of(plan: &Plan) -> Result<Self, SetUp> {
        let mut layout = Self::default();
        if plan.files == Files::ReadOnly {
            return Ok(layout);
        }
        let roots: Vec<_> = plan.writable().collect();
        let led: Vec<_> =
            plan.protected.iter().filter_map(|(path, reach)| closed(plan.tier, path.path(), *reach)).collect();
        for git in led {
            layout.protect(&roots, git, Reach::Tree).stage_at(STAGE, git.display())?;
        }
        for (path, reach) in &plan.protected {
            layout.protect(&roots, path.path(), *reach).stage_at(STAGE, path.path().display())?;
        }
        Ok(layout)
    }

    /// In the order in which they are to be mounted.
    pub(crate) fn binds(&self) -> Vec<Bind> {
        self.binds.iter().map(|(path, hold)| Bind { path: path.clone(), hold: *hold }).collect()
    }

    /// Forgets what could not be put there.
    pub(crate) fn without(&mut self, path: &Path) {
        self.binds.remove(path);
    }

    /// Goes down to a path, through links as well, and holds every name on the way: what is above a protected path and could
    /// be renamed would take the protection along.
    fn protect(&mut self, roots: &[&Path], path: &Path, reach: Reach) -> io::Result<()> {
        let (mut here, mut links) = (PathBuf::from("/"), 0);
        let mut ahead: VecDeque<OsString> = names(path);
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                here.pop();
                continue;
            }
            here.push(&name);
            if self.is_whole(&here) {
                return Ok(());
            }
            let inside = roots.iter().any(|root| here.starts_with(root) && here != *root);
            let found = match here.symlink_metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if inside {
                        self.miss(here, ahead.is_empty(), reach);
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            if found.is_symlink() {
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                if inside {
                    self.hold(&here, Hold::Name);
                }
                let target = here.read_link()?;
                here.pop();
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                for name in names(&target).into_iter().rev() {
                    ahead.push_front(name);
                }
            } else if inside {
                let last = ahead.is_empty();
                self.hold(&here, what_holds(&here, &found, last, reach)?);
            }
        }
        if reach != Reach::Entry {
            // What a root is in, or is itself, is not held by a name inside it.
            roots.iter().filter(|root| root.starts_with(&here)).for_each(|root| self.hold(root, Hold::Whole));
        }
        Ok(())
    }

    fn miss(&mut self, path: PathBuf, last: bool, reach: Reach) {
        let kind = match reach {
            Reach::File if last && is_common_dir(&path) => Kind::CommonDir,
            Reach::File if last => Kind::File,
            Reach::Entry | Reach::Tree | Reach::File => Kind::Directory,
        };
        self.hold(&path, Hold::Whole);
        self.placeholders.push(Placeholder { path, kind });
    }

    fn hold(&mut self, path: &Path, hold: Hold) {
        let held = self.binds.entry(path.to_owned()).or_insert(hold);
        *held = (*held).max(hold);
    }

    fn is_whole(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.binds.get(above) == Some(&Hold::Whole))
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

fn what_holds(path: &Path, found: &Metadata, last: bool, reach: Reach) -> io::Result<Hold> {
    if !found.is_dir() {
        return Ok(Hold::Whole);
    }
    Ok(match reach {
        _ if path.file_name() == Some(OsStr::new(".git")) && !is_repository(path)? => Hold::Whole,
        _ if !last => Hold::Name,
        Reach::Entry => Hold::Name,
        Reach::Tree | Reach::File => Hold::Whole,
    })
}

fn is_common_dir(path: &Path) -> bool {
    path.file_name() == Some(OsStr::new("commondir"))
}

/// The repository that is held as a whole because of this path: a `commondir` that is missing, whose placeholder would
/// change what git reads there. Where nothing can be mounted there are no placeholders either.
fn closed(tier: Tier, path: &Path, reach: Reach) -> Option<&Path> {
    let is_held = tier != Tier::WithoutNamespaces && reach == Reach::File && is_common_dir(path);
    let is_missing = || path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let git = path.parent()?;
    (is_held && is_missing() && config::says_where(git)).then_some(git)
}

/// Whether nothing of a git directory that is there may change, though its name alone is protected.
pub(crate) fn is_whole(tier: Tier, git: &Path) -> bool {
    let is_none = git.ends_with(".git") && !git.join("HEAD").exists();
    is_none || closed(tier, &git.join("commondir"), Reach::File).is_some()
}

/// Without a `HEAD` it is no repository to git, which then looks further up; but it is one as soon as somebody writes it.
fn is_repository(git: &Path) -> io::Result<bool> {
    match git.join("HEAD").symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
