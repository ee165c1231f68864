use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::super::anchored::Anchored;
use super::super::protect::{Hold, Layout};
use super::remove;

/// More than that below protected paths is not remembered.
const MOST_ENTRIES: usize = 20_000;
/// Longer files can be told from changed ones, but not restored.
const LONGEST: u64 = 256 * 1024;
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// The protected paths as they were before, where nothing can hold them: afterwards they are compared and restored.
pub(in super::super) struct Snapshot {
    before: BTreeMap<PathBuf, Entry>,
    /// Names that are held, but not what is below them.
    names: BTreeMap<PathBuf, (u64, u64)>,
    missing: Vec<PathBuf>,
    whole: Vec<PathBuf>,
    is_cut: bool,
}

#[derive(Clone, PartialEq, Eq)]
enum Entry {
    Directory { mode: u32 },
    Link { target: PathBuf },
    File { mode: u32, ino: u64, size: u64, changed: (i64, i64), content: Option<Vec<u8>> },
    Other { mode: u32, ino: u64 },
}

impl Snapshot {
    pub(in super::super) fn take(layout: &Layout) -> Self {
        let binds = layout.binds();
        let placeholders: Vec<_> = layout.placeholders.iter().map(|it| it.path.clone()).collect();
        let missing = placeholders.clone();
        let held = |hold| binds.iter().filter(move |bind| bind.hold == hold).map(|bind| bind.path.clone());
        let whole: Vec<_> = held(Hold::Whole).filter(|path| !placeholders.contains(path)).collect();
        let names = held(Hold::Name).filter_map(|path| identity(&path).map(|identity| (path, identity))).collect();
        let (mut before, mut room) = (BTreeMap::new(), MOST_BYTES);
        let mut is_cut = false;
        for path in &whole {
            is_cut |= look(path, &mut before, Some(&mut room)).is_err();
        }
        Self { before, names, missing, whole, is_cut }
    }

    /// Restores what changed as far as it can be, and says what was found.
    pub(in super::super) fn restore(self) -> Vec<String> {
        let mut found: Vec<_> =
            self.missing.iter().filter(|path| path.symlink_metadata().is_ok()).map(|path| remove(path)).collect();
        for (path, before) in &self.names {
            if identity(path) != Some(*before) {
                found.push(format!("{} is protected, and the command replaced it", path.display()));
            }
        }
        let mut after = BTreeMap::new();
        let mut is_cut = self.is_cut;
        for path in &self.whole {
            is_cut |= look(path, &mut after, None).is_err();
        }
        if is_cut {
            found.push(
                "there is more below protected paths than can be compared: changes there may be unseen".to_owned(),
            );
        }
        let news = after.keys().filter(|path| !self.before.contains_key(*path));
        // Those inside a new directory go with it.
        let news = news.filter(|path| {
            path.parent().is_none_or(|above| !after.contains_key(above) || self.before.contains_key(above))
        });
        found.extend(news.filter(|_| !self.is_cut).map(|path| remove(path)));
        for (path, before) in &self.before {
            if after.get(path).is_some_and(|after| before.is_same(after)) {
                continue;
            }
            let what = match before.put(path) {
                Ok(()) => "is protected; the command had changed it, and it was restored".to_owned(),
                Err(error) => format!("is protected; the command changed it, and it could not be restored: {error}"),
            };
            found.push(format!("{} {what}", path.display()));
        }
        found
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// There are too many entries.
struct TooMany;

/// Enters what is at and below a path, with contents as far as there is room.
fn look(path: &Path, into: &mut BTreeMap<PathBuf, Entry>, mut room: Option<&mut u64>) -> Result<(), TooMany> {
    let mut ahead = vec![path.to_owned()];
    while let Some(path) = ahead.pop() {
        if into.len() >= MOST_ENTRIES {
            return Err(TooMany);
        }
        let Ok(found) = path.symlink_metadata() else { continue };
        if found.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            ahead.extend(entries.map(|entry| entry.path()));
        }
        let entry = Entry::of(&path, &found, room.as_deref_mut());
        into.insert(path, entry);
    }
    Ok(())
}

impl Entry {
    fn of(path: &Path, found: &fs::Metadata, room: Option<&mut u64>) -> Self {
        let (mode, ino, size) = (found.mode(), found.ino(), found.len());
        if found.is_dir() {
            Self::Directory { mode }
        } else if found.is_symlink() {
            Self::Link { target: path.read_link().unwrap_or_default() }
        } else if found.is_file() {
            let content = room.filter(|room| size <= LONGEST && size <= **room).and_then(|room| {
                *room -= size;
                read(path)
            });
            Self::File { mode, ino, size, changed: (found.ctime(), found.ctime_nsec()), content }
        } else {
            Self::Other { mode, ino }
        }
    }

    fn is_same(&self, after: &Self) -> bool {
        match (self, after) {
            (
                Self::File { mode, ino, size, changed, .. },
                Self::File { mode: mode_after, ino: ino_after, size: size_after, changed: changed_after, .. },
            ) => (mode, ino, size, changed) == (mode_after, ino_after, size_after, changed_after),
            (before, after) => before == after,
        }
    }

    fn put(&self, path: &Path) -> io::Result<()> {
        let anchored = Anchored::at(path)?;
        let path = anchored.path();
        let clear = || match path.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(_) => Ok(()),
        };
        match self {
            Self::Directory { mode } => {
                if !path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                    clear()?;
                    fs::create_dir(path)?;
                }
                fs::set_permissions(path, Permissions::from_mode(*mode & 0o7777))
            }
            Self::Link { target } => {
                clear()?;
                symlink(target, path)
            }
            Self::File { mode, content: Some(content), .. } => {
                clear()?;
                let mut file = File::options().write(true).create_new(true).mode(mode & 0o7777).open(path)?;
                file.write_all(content)?;
                file.set_permissions(Permissions::from_mode(*mode & 0o7777))
            }
            Self::File { content: None, .. } => Err(io::Error::other("it was too long to be kept")),
            Self::Other { .. } => Err(io::Error::other("it is neither a file, nor a directory, nor a link")),
        }
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut content).ok()?;
    Some(content)
}
