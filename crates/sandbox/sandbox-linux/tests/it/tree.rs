//! What is on the disk, so that it can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names, kinds, owners, modes, times, contents, attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<PathBuf, String>);

impl Tree {
    /// What is at and below paths, but for what is below `except`.
    pub(crate) fn of<'a>(paths: impl IntoIterator<Item = &'a Path>, except: &[PathBuf]) -> Self {
        let mut all = BTreeMap::new();
        let mut ahead: Vec<_> = paths.into_iter().map(Path::to_owned).collect();
        while let Some(path) = ahead.pop() {
            let Ok(found) = path.symlink_metadata() else { continue };
            if except.contains(&path) {
                continue;
            }
            if found.is_dir() {
                ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
            let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
            let owner = (found.uid(), found.gid(), found.mode(), found.ino(), found.nlink());
            let target = path.read_link().ok();
            let sign = format!(
                "{:?} {times:?} {owner:?} {target:?} {} bytes {:x?}",
                found.file_type(),
                content.len(),
                content
            );
            all.insert(path, sign);
        }
        Self(all)
    }

    /// Every path that is not as it was, in words.
    pub(crate) fn changes(&self, after: &Self) -> Vec<String> {
        let gone = self.0.iter().filter(|(path, sign)| after.0.get(*path) != Some(sign));
        let gone = gone.map(|(path, sign)| {
            let now = after.0.get(path).map_or("gone", String::as_str);
            format!("{}: {sign:.200} -> {now:.200}", path.display())
        });
        let new = after.0.keys().filter(|path| !self.0.contains_key(*path));
        gone.chain(new.map(|path| format!("{} is new", path.display()))).collect()
    }
}
