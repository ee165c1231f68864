//! What an unconfined process does to a world: anything, but only inside it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, RenameFlags, mknodat, renameat_with};

/// One thing that somebody does. Paths are relative to the top of the world; what is not below it, or cannot be done, is
/// left alone.
#[derive(Clone, Debug)]
pub(crate) enum Meddle {
    /// Renames.
    Move(String, String),
    /// Exchanges the names of two things.
    Swap(String, String),
    /// Makes a symbolic link, to anywhere, of that name.
    Link(String, String),
    /// Gives a file one more name.
    Hard(String, String),
    /// Makes a directory.
    Make(String),
    /// Removes a file, a link or an empty directory.
    Remove(String),
    /// Makes a named pipe.
    Pipe(String),
    /// Makes a file, or writes one anew.
    Put(String),
}

impl Meddle {
    pub(crate) fn happen(self, top: &Path) {
        // What does not work does not happen.
        let _result: Option<()> = self.attempt(top);
    }

    fn attempt(self, top: &Path) -> Option<()> {
        let at = |path: &str| place(top, path);
        match self {
            Self::Move(from, to) => fs::rename(at(&from)?, at(&to)?).ok(),
            Self::Swap(one, other) => renameat_with(CWD, at(&one)?, CWD, at(&other)?, RenameFlags::EXCHANGE).ok(),
            Self::Link(target, path) => symlink(target, at(&path)?).ok(),
            Self::Hard(from, to) => fs::hard_link(at(&from)?, at(&to)?).ok(),
            Self::Make(path) => fs::create_dir(at(&path)?).ok(),
            Self::Remove(path) => {
                let path = at(&path)?;
                fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).ok()
            }
            Self::Pipe(path) => mknodat(CWD, at(&path)?, FileType::Fifo, 0o600.into(), 0).ok(),
            Self::Put(path) => {
                let path = at(&path)?;
                match path.symlink_metadata() {
                    Ok(found) if found.is_file() => fs::write(path, "put anew").ok(),
                    // Never through a link: it may lead out of the world.
                    Ok(_) => None,
                    Err(_) => File::create_new(path).map(drop).ok(),
                }
            }
        }
    }
}

/// A name in a directory of the world, with no link on the way to it.
fn place(top: &Path, path: &str) -> Option<PathBuf> {
    let path = top.join(path.trim_start_matches('/'));
    let name: &OsStr = match path.components().next_back()? {
        Component::Normal(name) => name,
        _ => return None,
    };
    let parent = path.parent()?.canonicalize().ok()?;
    parent.starts_with(top).then(|| parent.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[test]
    fn nothing_happens_outside_of_the_world() {
        let world = World::new();
        world.link("/", "ws/away");
        world.link("/etc", "ws/etc");
        for path in ["", "/", "..", "../x", "ws/..", "ws/../../x", "ws/away/x", "ws/etc/passwd", "nowhere/x"] {
            assert_eq!(place(world.top(), path), None, "{path}");
        }
        assert_eq!(place(world.top(), "ws/sub/../x"), Some(world.at("ws/x")));
        assert_eq!(place(world.top(), "ws/away"), Some(world.at("ws/away")), "the link itself");
        Meddle::Put("ws/etc".into()).happen(world.top());
        assert!(world.at("ws/etc").is_symlink());
    }

    #[test]
    fn what_can_happen_does() {
        let world = World::new();
        let happen = |meddle: Meddle| meddle.happen(world.top());
        happen(Meddle::Move("ws/sub".into(), "outside/sub".into()));
        happen(Meddle::Link("../outside/sub".into(), "ws/sub".into()));
        happen(Meddle::Hard("outside/secret.txt".into(), "ws/hard".into()));
        happen(Meddle::Make("ws/new".into()));
        happen(Meddle::Put("ws/new/file".into()));
        happen(Meddle::Pipe("ws/new/pipe".into()));
        happen(Meddle::Remove("ws/file.txt".into()));
        happen(Meddle::Swap("ws/new".into(), "temp".into()));
        assert_eq!(fs::read_to_string(world.at("ws/sub/deep.txt")).unwrap(), "deep");
        assert_eq!(fs::read_to_string(world.at("ws/hard")).unwrap(), "theirs");
        assert!(world.at("temp/file").is_file() && world.at("temp/pipe").exists() && !world.at("ws/file.txt").exists());
    }
}
