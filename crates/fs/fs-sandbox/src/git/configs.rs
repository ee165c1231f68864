use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sandbox::Extent;

use super::Unread;
use super::files::{Room, is_file};
use super::places::Places;
use super::settings::{Setting, settings};
use super::user::expanded;

/// How many configuration files are read, with those that they include.
pub(super) const MAX_CONFIGS: usize = 4_096;

/// The configuration files of one look, each read once.
#[derive(Default)]
pub(super) struct Configs {
    pub(super) room: Room,
    read: BTreeMap<PathBuf, Rc<[Setting]>>,
}

impl Configs {
    /// What these files say, with those that they include: every place as git takes it, but for hooks and commands, which are
    /// relative to where it works.
    pub(super) fn settings(
        &mut self,
        files: Vec<PathBuf>,
        home: Option<&Path>,
        places: &mut Places,
    ) -> Result<Vec<Setting>, Unread> {
        let mut known: BTreeSet<PathBuf> = files.iter().cloned().collect();
        let (mut ahead, mut all) = (VecDeque::from(files), Vec::new());
        while let Some(file) = ahead.pop_front() {
            let beside = file.parent().unwrap_or(Path::new("/"));
            for setting in &*self.file(&file, places)? {
                let at_home = |path: &Path| expanded(path, home);
                match setting {
                    Setting::Include(path) => {
                        let included = at_home(path)?.map(|path| beside.join(path));
                        ahead.extend(included.filter(|path| known.insert(path.clone())));
                    }
                    Setting::Top(path) => all.push(Setting::Top(beside.join(path))),
                    Setting::Hooks(path) => all.extend(at_home(path)?.map(Setting::Hooks)),
                    Setting::Template(path) => all.extend(at_home(path)?.map(Setting::Template)),
                    Setting::Command(line) => all.push(Setting::Command(line.clone())),
                }
            }
        }
        Ok(all)
    }

    fn file(&mut self, path: &Path, places: &mut Places) -> Result<Rc<[Setting]>, Unread> {
        if let Some(read) = self.read.get(path) {
            return Ok(read.clone());
        }
        if !places.led(path, Extent::File)? {
            return Ok(Rc::default());
        }
        if !is_file(path).map_err(|source| Unread::Io { path: path.to_owned(), source })? {
            return Ok(Rc::default());
        }
        if self.read.len() == MAX_CONFIGS {
            // What is not read may name hooks.
            return Err(Unread::TooManyConfigs { first_unread: path.to_owned() });
        }
        let read: Rc<[Setting]> = settings(&self.room.content(path)?).into();
        self.read.insert(path.to_owned(), read.clone());
        Ok(read)
    }
}
