use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sandbox::{Extent, Protected, Protections};

use super::{Git, Unread, is_denied, leads_nowhere};
use crate::asked::lexical;
use crate::lands::Walk;

/// How many names one look goes along.
pub(super) const MAX_STEPS: usize = 32_768;

/// The places that a look found.
pub(super) struct Places {
    /// Where commands may write, the root first.
    writable: Vec<PathBuf>,
    found: BTreeMap<PathBuf, Extent>,
    /// Where repositories are kept inside the root, beside its `.git`.
    directories: BTreeSet<PathBuf>,
    /// What was asked for already.
    asked: BTreeSet<(PathBuf, bool)>,
    seen: BTreeSet<PathBuf>,
    steps: usize,
}

/// What a path leads to.
struct Led {
    /// Links on the way, and what is missing on it.
    through: Vec<PathBuf>,
    end: Option<PathBuf>,
}

impl Places {
    pub(super) fn of(git: &Git) -> Self {
        Self {
            writable: [git.root.clone()].into_iter().chain(git.temp.clone()).collect(),
            found: BTreeMap::new(),
            directories: BTreeSet::new(),
            asked: BTreeSet::new(),
            seen: BTreeSet::new(),
            steps: 0,
        }
    }

    /// A place that git goes to, as what it is there for, with every link that leads it there.
    pub(super) fn led(&mut self, path: &Path, sought: Extent) -> Result<(), Unread> {
        if !self.asked.insert((path.to_owned(), sought == Extent::File)) {
            return Ok(());
        }
        let Led { through, end } = self.follow(path)?;
        through.into_iter().for_each(|place| self.find(place, Extent::Entry));
        for place in end.into_iter().chain([lexical(path)]) {
            // A directory is no file to git, until somebody puts one in its place.
            let extent = if sought == Extent::File && place.is_dir() { Extent::Entry } else { sought };
            self.find(place, extent);
        }
        Ok(())
    }

    /// A directory that git keeps a repository in.
    pub(super) fn directory(&mut self, git: &Path) -> Result<(), Unread> {
        let Led { through, end } = self.follow(git)?;
        through.into_iter().for_each(|place| self.find(place, Extent::Entry));
        let own = self.writable[0].join(".git");
        for place in end.into_iter().chain([lexical(git)]) {
            if self.is_inside(&place) && place != own {
                self.directories.insert(place);
            }
        }
        Ok(())
    }

    /// Whether a path leads into, or through, what commands may write.
    pub(super) fn leads_inside(&mut self, path: &Path) -> Result<bool, Unread> {
        let Led { through, end } = self.follow(path)?;
        Ok(through.iter().chain(&end).any(|place| self.is_inside(place)))
    }

    /// Whether this is the first time that a directory is asked for.
    pub(super) fn is_new(&mut self, directory: &Path) -> bool {
        self.seen.insert(directory.to_owned())
    }

    /// One more thing that is looked at.
    pub(super) fn step(&mut self) -> Result<(), Unread> {
        self.steps += 1;
        if self.steps > MAX_STEPS { Err(Unread::TooFar) } else { Ok(()) }
    }

    fn follow(&mut self, path: &Path) -> Result<Led, Unread> {
        let failed = |source| Unread::Io { path: path.to_owned(), source };
        let mut walk = Walk::along(path).map_err(failed)?;
        loop {
            self.step()?;
            let end = match walk.step() {
                Ok(true) => continue,
                Ok(false) => Some(walk.at),
                Err(error) if leads_nowhere(&error) => {
                    // A name that comes into being there leads on.
                    walk.links.push(walk.at);
                    None
                }
                Err(error) if is_denied(&error) && !self.is_inside(&walk.at) => None,
                Err(error) => return Err(failed(error)),
            };
            return Ok(Led { through: walk.links, end });
        }
    }

    fn find(&mut self, place: PathBuf, extent: Extent) {
        let is_whole_root = extent == Extent::Entry && self.writable.contains(&place);
        if self.is_inside(&place) && !is_whole_root {
            let held = self.found.entry(place).or_insert(extent);
            *held = wider(*held, extent);
        }
    }

    fn is_inside(&self, place: &Path) -> bool {
        self.writable.iter().any(|root| place.starts_with(root))
    }

    pub(super) fn protections(self, git: &Git) -> Result<Protections, Unread> {
        let mut all = Protections::default();
        all.git_directory(&git.root.join(".git"));
        let always = all.protected.len();
        self.directories.iter().for_each(|git| all.git_directory(git));
        let known = all.protected.clone();
        let is_held = |led: &Protected| {
            let holds = |it: &Protected| it == led || it.extent != Extent::Entry && led.path.starts_with(&it.path);
            known.iter().any(holds)
        };
        let led = self.found.into_iter().map(|(path, extent)| Protected { path, extent });
        all.protected.extend(led.filter(|led| !is_held(led)));
        // The root's own is protected by whoever asks.
        all.protected.drain(..always);
        match all.protected.len() {
            count if count > git.room => Err(Unread::TooMany { count, room: git.room }),
            _ => Ok(all),
        }
    }
}

fn wider(one: Extent, other: Extent) -> Extent {
    let width = |extent| match extent {
        Extent::Entry => 0,
        Extent::File => 1,
        Extent::Tree => 2,
    };
    if width(one) < width(other) { other } else { one }
}
