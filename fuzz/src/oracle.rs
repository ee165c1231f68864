//! What may have changed, judged by names and inodes on the disk. It shares no code with what it judges.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::world::{Id, Picture, Thing};

/// Protected in every root, with everything below it.
const TREES: [&str; 7] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/modules",
    ".git/worktrees",
    ".tether",
];

/// Protected in every root, but not what is below it.
const ENTRY: &str = ".git";

/// Where one agent works, as it was when its fence was opened.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// The root's name, and what it was.
    pub(crate) root: (PathBuf, Id),
    /// What the session's temporary directory was.
    pub(crate) temp: Option<Id>,
    /// Tether's own, absolute.
    pub(crate) homes: Vec<PathBuf>,
    /// Protected too, relative to the root.
    pub(crate) protected: Vec<PathBuf>,
}

/// What must not be touched at one moment.
pub(crate) struct Rules {
    /// Where the root is by now, and the temporary directory.
    writable: Vec<PathBuf>,
    /// Neither these nor anything below.
    trees: Vec<PathBuf>,
    /// Not these.
    entries: Vec<PathBuf>,
    /// No such name in this directory, whatever its case.
    names: Vec<(PathBuf, OsString)>,
    homes: Vec<PathBuf>,
    before: Picture,
    /// Whether something was moved during the operation: a directory that it held may be touched wherever that is by now.
    disturbed: bool,
}

/// What an operation says that it did.
pub(crate) enum Did {
    /// Looked, or was refused before it began.
    Nothing,
    /// Tried to write, and failed.
    Failed,
    /// Wrote this, and nothing else.
    Wrote(Vec<u8>),
}

impl Places {
    /// What holds at this moment, `before` being everything that there is.
    pub(crate) fn rules(&self, before: Picture) -> Rules {
        let find = |id: Id| before.iter().find(|(_, thing)| thing.id == id).map(|(path, _)| path.clone());
        let root = find(self.root.1);
        let mut rules = Rules {
            writable: root.iter().cloned().chain(self.temp.and_then(find)).collect(),
            trees: Vec::new(),
            entries: Vec::new(),
            names: Vec::new(),
            homes: Vec::new(),
            before,
            disturbed: false,
        };
        // A root that was moved is still the root; its names go with it.
        let moved = |path: &Path| match (path.strip_prefix(&self.root.0), &root) {
            (Ok(below), Some(root)) => root.join(below),
            _ => path.to_owned(),
        };
        let relative = TREES.iter().map(Path::new).chain(self.protected.iter().map(PathBuf::as_path));
        for tree in relative.map(|path| self.root.0.join(path)).chain(self.homes.iter().cloned()) {
            let tree = moved(&tree);
            rules.name(&tree);
            rules.trees.extend(tree.canonicalize());
        }
        rules.homes.extend(self.homes.iter().filter_map(|home| moved(home).canonicalize().ok()));
        let entry = moved(&self.root.0.join(ENTRY));
        rules.name(&entry);
        rules.entries.extend(entry.canonicalize());
        rules
    }

    /// Whether the root still has its name.
    pub(crate) fn root_is_in_place(&self) -> bool {
        self.root.0.metadata().is_ok_and(|meta| Id::of(&meta) == self.root.1)
    }
}

impl Rules {
    /// Guards the name of a place, also where not even its directory is there yet.
    fn name(&mut self, path: &Path) {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return };
        let there = parent.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
        if let Some((there, real)) = there {
            let missing = parent.strip_prefix(there).expect("it is one of the ancestors");
            self.names.push((real.join(missing), name.to_owned()));
        }
    }

    /// The same, for an operation during which something was moved.
    pub(crate) fn disturbed(self) -> Self {
        Self { disturbed: true, ..self }
    }

    /// Whether a path with no link on it is Tether's own.
    pub(crate) fn is_private(&self, path: &Path) -> bool {
        self.homes.iter().any(|home| path.starts_with(home))
    }

    /// Whether `content` stands in nothing but what is Tether's own.
    pub(crate) fn is_kept_private(&self, content: &str) -> bool {
        let holds = |thing: &Thing| thing.content.windows(content.len()).any(|part| part == content.as_bytes());
        self.before.iter().filter(|(_, thing)| holds(thing)).all(|(path, _)| self.is_private(path))
    }

    /// What the first file holds that is not as it was, if there is one.
    pub(crate) fn new_content(&self, after: &Picture) -> Option<Vec<u8>> {
        let new = |(path, thing): &(&PathBuf, &Thing)| {
            thing.is_file() && !self.before.get(*path).is_some_and(|before| before.is_like(thing))
        };
        after.iter().find(new).map(|(_, thing)| thing.content.clone())
    }

    /// Panics unless what changed is what was said, where it may be.
    #[track_caller]
    pub(crate) fn judge(&self, after: &Picture, did: &Did) {
        let mut changed = Vec::new();
        for (path, thing) in after {
            match self.before.get(path) {
                Some(before) if before.is_like(thing) => {
                    let touched = before.times != thing.times;
                    // A file under a temporary name comes and goes in the directory of a write.
                    let may = thing.is_directory()
                        && !matches!(did, Did::Nothing)
                        && (self.disturbed || self.is_writable(path));
                    assert!(!touched || may, "{} was touched", path.display());
                }
                _ => changed.push((path, thing)),
            }
        }
        let gone: Vec<_> = self.before.keys().filter(|path| !after.contains_key(*path)).collect();
        assert!(gone.is_empty(), "gone: {gone:?}");
        let Did::Wrote(content) = did else {
            assert!(changed.is_empty(), "changed: {changed:?}");
            return;
        };
        let (directories, files): (Vec<_>, Vec<_>) = changed.iter().partition(|(_, thing)| thing.is_directory());
        let [(file, thing)] = files[..] else { panic!("one file was written, and changed were: {changed:?}") };
        assert!(thing.is_file() && thing.links == 1 && thing.content == *content, "{}: {thing:?}", file.display());
        if let Some(before) = self.before.get(file) {
            assert!(before.is_file() && before.links == 1, "{} was replaced: {before:?}", file.display());
            assert_eq!(before.mode, thing.mode, "{} lost its permissions", file.display());
        }
        for (directory, _) in directories {
            assert!(!self.before.contains_key(directory), "{} was replaced", directory.display());
            assert!(file.starts_with(directory), "{} is not on the way to {}", directory.display(), file.display());
        }
        for (path, _) in changed {
            assert!(self.is_writable(path), "{} was written, and may not be", path.display());
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        let named = |(parent, name): &(PathBuf, OsString)| {
            path.parent() == Some(parent) && path.file_name().is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        self.writable.iter().any(|root| path.starts_with(root))
            && !self.trees.iter().any(|tree| path.starts_with(tree))
            && (!(self.entries.iter().any(|entry| *entry == path) || self.names.iter().any(named))
                // Below one, files come and go.
                || self.before.get(path).is_some_and(Thing::is_directory))
    }
}

/// Whether an absolute path has no part that leads elsewhere by its text.
pub(crate) fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::world::World;

    /// Whether the oracle lets it pass that `meddle` happened where `did` was said.
    fn passes(meddle: fn(&World), did: Did) -> bool {
        let world = World::new();
        let root = world.at("ws");
        let id = Id::of(&root.metadata().unwrap());
        let protected = vec!["ci/deploy.sh".into()];
        let places = Places { root: (root, id), temp: None, homes: vec![world.at("home")], protected };
        let rules = places.rules(world.picture());
        meddle(&world);
        catch_unwind(AssertUnwindSafe(|| rules.judge(&world.picture(), &did))).is_ok()
    }

    #[test]
    fn what_was_said_may_have_happened() {
        let wrote = || Did::Wrote(b"x".to_vec());
        assert!(passes(|_| {}, Did::Nothing) && passes(|_| {}, Did::Failed));
        assert!(passes(|w| w.put("ws/sub/new/file", "x"), wrote()));
        assert!(passes(|w| w.put("ws/ci/other.sh", "x"), wrote()));
        assert!(passes(|w| w.put("ws/.git/index", "x"), wrote()));
    }

    #[test]
    fn nothing_else_may() {
        let wrote = || Did::Wrote(b"x".to_vec());
        assert!(!passes(|_| {}, wrote()), "nothing was written");
        assert!(!passes(|w| w.put("ws/new", "y"), wrote()), "something else was written");
        assert!(!passes(|w| w.put("ws/new", "x"), Did::Nothing) && !passes(|w| w.put("ws/new", "x"), Did::Failed));
        assert!(!passes(|w| fs::remove_file(w.at("ws/file.txt")).unwrap(), Did::Failed));
        assert!(!passes(|w| w.put("outside/new", "x"), wrote()));
        assert!(!passes(|w| w.put("outside/secret.txt", "x"), wrote()));
        assert!(!passes(|w| w.put("home/new", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/.git/hooks/a/b", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/.git/config", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/.git/CONFIG", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/.GIT/hooks", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/.tether/config.toml", "x"), wrote()));
        assert!(!passes(|w| w.put("ws/ci/deploy.sh", "x"), wrote()));
    }

    #[test]
    fn what_is_private_is_known_by_what_it_is() {
        let world = World::new();
        let root = world.at("ws");
        let id = Id::of(&root.metadata().unwrap());
        let homes = vec![world.at("home"), world.at("ws/.home")];
        let places = Places { root: (root, id), temp: None, homes, protected: Vec::new() };
        let rules = places.rules(world.picture());
        assert!(rules.is_private(&world.at("home/x")) && !rules.is_private(&world.at("outside")));
        assert!(rules.is_kept_private(world.secret()));
        fs::hard_link(world.at("home/sessions/other.jsonl"), world.at("ws/found")).unwrap();
        assert!(!places.rules(world.picture()).is_kept_private(world.secret()));
        fs::rename(world.at("ws"), world.at("moved")).unwrap();
        let rules = places.rules(world.picture());
        assert!(rules.is_private(&world.at("moved/.home/x")) && !places.root_is_in_place());
    }
}
