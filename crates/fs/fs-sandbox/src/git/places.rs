use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sandbox::{Extent, Protected, Protections};

use super::{Git, Unread, is_denied, leads_nowhere};
use crate::asked::lexical;
use crate::lands::Walk;

/// How many names one look goes along.
pub(super) const MAX_STEPS: usize = 65_536;

/// How many files are looked for, of which most are none.
const MAX_LOOKS: usize = 262_144;

/// How many names one path leads along.
const MAX_NAMES: usize = 512;

/// The places that a look found.
pub(super) struct Places {
    /// Where commands may write, the root first.
    writable: Vec<PathBuf>,
    found: BTreeMap<PathBuf, Extent>,
    /// Where repositories are kept inside the root, beside its `.git`.
    directories: BTreeSet<PathBuf>,
    /// What was asked for already, and whether it is got to.
    asked: BTreeMap<(PathBuf, bool), bool>,
    seen: BTreeSet<PathBuf>,
    steps: usize,
    looks: usize,
}

/// What a path leads to.
struct Led {
    /// Links on the way, and what is missing or closed on it.
    through: Vec<(PathBuf, Extent)>,
    end: Option<PathBuf>,
}

impl Places {
    pub(super) fn of(git: &Git) -> Self {
        Self {
            writable: [git.root.clone()].into_iter().chain(git.temp.clone()).collect(),
            found: BTreeMap::new(),
            directories: BTreeSet::new(),
            asked: BTreeMap::new(),
            seen: BTreeSet::new(),
            steps: 0,
            looks: 0,
        }
    }

    /// A place that git goes to, as what it is there for, with every link that leads it there. Whether it is got to, or could
    /// be.
    pub(super) fn led(&mut self, path: &Path, sought: Extent) -> Result<bool, Unread> {
        if let Some(is_open) = self.asked.get(&(path.to_owned(), sought == Extent::File)) {
            return Ok(*is_open);
        }
        let Led { through, end } = self.follow(path)?;
        let is_open = end.is_some();
        self.asked.insert((path.to_owned(), sought == Extent::File), is_open);
        through.into_iter().for_each(|(place, extent)| self.find(place, extent));
        for place in end.into_iter().chain([lexical(path)]) {
            // A directory is no file to git, until somebody puts one in its place.
            let extent = if sought == Extent::File && place.is_dir() { Extent::Entry } else { sought };
            self.find(place, extent);
        }
        Ok(is_open)
    }

    /// A file that may be what git goes to, if there is one by that name. Whatever else is there leads git nowhere, and is
    /// not what a name was chosen for.
    pub(super) fn led_if_there(&mut self, path: &Path) -> Result<(), Unread> {
        self.looks += 1;
        if self.looks > MAX_LOOKS {
            return Err(Unread::TooFar);
        }
        let may_be_there = match path.symlink_metadata() {
            Ok(found) => !found.is_dir(),
            Err(error) => is_denied(&error),
        };
        match may_be_there.then(|| self.led(path, Extent::File)).transpose() {
            Err(Unread::Io { .. } | Unread::TooLongAWay { .. }) | Ok(_) => Ok(()),
            Err(unread) => Err(unread),
        }
    }

    /// A directory that git keeps a repository in.
    pub(super) fn directory(&mut self, git: &Path) -> Result<(), Unread> {
        let Led { through, end } = self.follow(git)?;
        through.into_iter().for_each(|(place, extent)| self.find(place, extent));
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
        Ok(through.iter().map(|(place, _)| place).chain(&end).any(|place| self.is_inside(place)))
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
        let mut stopped = None;
        for _ in 0..MAX_NAMES {
            self.step()?;
            match walk.step() {
                Ok(true) => {}
                Ok(false) => {
                    let through = walk.links.into_iter().map(|link| (link, Extent::Entry)).collect();
                    return Ok(Led { through, end: Some(walk.at) });
                }
                // A name that comes into being there leads on.
                Err(error) if leads_nowhere(&error) => stopped = Some(Extent::Entry),
                // Whoever closed it can open it, and nobody knows what is in it.
                Err(error) if is_denied(&error) => stopped = Some(Extent::Tree),
                Err(error) => return Err(failed(error)),
            }
            if let Some(extent) = stopped {
                let links = walk.links.into_iter().map(|link| (link, Extent::Entry));
                return Ok(Led { through: links.chain([(walk.at, extent)]).collect(), end: None });
            }
        }
        Err(Unread::TooLongAWay { path: path.to_owned() })
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
        let is_known = |led: &Protected| {
            let holds = |it: &Protected| it == led || it.extent != Extent::Entry && led.path.starts_with(&it.path);
            known.iter().any(holds)
        };
        let is_below = |path: &Path| path.ancestors().skip(1).any(|above| self.found.get(above) == Some(&Extent::Tree));
        let led = self.found.iter().filter(|(path, _)| !is_below(path));
        let led = led.map(|(path, extent)| Protected { path: path.clone(), extent: *extent });
        all.protected.extend(led.filter(|led| !is_known(led)));
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
