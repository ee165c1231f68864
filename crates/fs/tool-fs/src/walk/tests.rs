use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use fs::Names;
use sandbox::{Denial, Mode, Operation};

use super::*;
use crate::ignored::Rules;
use crate::search::Ignored;

/// Paths and what is there. `!` in a name: it is not readable; `?`: it is denied.
#[derive(Clone)]
struct Tree {
    path: PathBuf,
    entries: BTreeMap<PathBuf, Kind>,
}

impl Tree {
    fn start(entries: &[(&str, Kind)]) -> Start {
        let entries = entries.iter().map(|(path, kind)| (Path::new("/w").join(path), *kind)).collect();
        let tree = Self { path: "/w".into(), entries };
        Start { directory: Box::new(tree), path: "/w".into(), rules: Rules::new(Ignored::LeftOut) }
    }
}

impl Directory for Tree {
    fn path(&self) -> &Path {
        &self.path
    }

    fn entries(&self, max: usize) -> Result<Names, FsError> {
        let inside = self.entries.iter().filter(|(path, _)| path.parent() == Some(&self.path));
        let mut names = inside.map(|(path, kind)| (path.file_name().unwrap().to_owned(), *kind)).collect::<Vec<_>>();
        let truncated = names.len() > max;
        names.truncate(max);
        Ok(Names { names, truncated })
    }

    fn directory(&self, name: &OsStr) -> Result<Box<dyn Directory>, FsError> {
        let path = self.path.join(name);
        match name.to_str().unwrap() {
            name if name.contains('!') => {
                Err(FsError::Io { operation: Operation::Search, path, source: io::Error::other("no") })
            }
            name if name.contains('?') => {
                Err(FsError::Denied(Denial::new(Operation::Search, name, Mode::ReadOnly), fs::Why::Home))
            }
            _ => Ok(Box::new(Self { path, ..self.clone() })),
        }
    }

    fn read(&self, name: &OsStr, _: u64) -> Result<Vec<u8>, FsError> {
        Err(FsError::NotFound(name.into()))
    }
}

fn walked(entries: &[(&str, Kind)], limits: Limits, stop: &Stop, stop_at: Option<&str>) -> (Vec<String>, Skipped) {
    let mut seen = Vec::new();
    let skipped = walk(Tree::start(entries), stop, limits, |file, _| {
        seen.push(file.path.strip_prefix("/w").unwrap().to_str().unwrap().to_owned());
        if stop_at == file.name.to_str() {
            stop.now(Why::Time);
        }
    });
    (seen, skipped.unwrap())
}

const TREE: [(&str, Kind); 10] = [
    ("b", Kind::File),
    ("a", Kind::Directory),
    ("a/z", Kind::File),
    ("a/deep", Kind::Directory),
    ("a/deep/y", Kind::Symlink),
    ("a.txt", Kind::File),
    ("no!", Kind::Directory),
    ("no?", Kind::Directory),
    ("pipe", Kind::Pipe),
    (".git", Kind::Directory),
];

#[test]
fn what_is_there_comes_in_order() {
    let (seen, skipped) = walked(&TREE, Limits::default(), &Stop::default(), None);
    assert_eq!(seen, ["a/deep/y", "a/z", "a.txt", "b"]);
    assert_eq!(skipped, Skipped { ignored: 1, unreadable: 1, ..Skipped::default() });
}

#[test]
fn a_walk_keeps_to_its_limits() {
    let (seen, skipped) = walked(&TREE, Limits { entries: 100, depth: 1 }, &Stop::default(), None);
    assert_eq!((&*seen.join(" "), skipped.deep, skipped.cut), ("a/z a.txt b", 1, None));
    // Seven on the first level; of the two in `a` only one more is looked at.
    let (seen, skipped) = walked(&TREE, Limits { entries: 8, depth: 9 }, &Stop::default(), None);
    assert_eq!((&*seen.join(" "), skipped.cut), ("", Some(Cut::Entries)));
    let (seen, skipped) = walked(&TREE, Limits { entries: 10, depth: 9 }, &Stop::default(), None);
    assert_eq!((seen.len(), skipped.cut), (4, None));
}

#[test]
fn a_walk_ends_when_it_is_told_to() {
    let stop = Stop::default();
    let (seen, skipped) = walked(&TREE, Limits::default(), &stop, Some("z"));
    assert_eq!((&*seen.join(" "), skipped.cut), ("a/deep/y a/z", Some(Cut::Time)));
    stop.now(Why::Left);
    assert_eq!(walked(&TREE, Limits::default(), &stop, None).0, [""; 0]);
}

#[test]
fn what_was_not_looked_at_is_told() {
    assert_eq!(Skipped { ignored: 9, ..Skipped::default() }.told(), "");
    let all = Skipped {
        binary: 1,
        large: 2,
        long_lines: 3,
        unreadable: 4,
        deep: 5,
        rules: 6,
        cut: Some(Cut::Time),
        ..Skipped::default()
    };
    let want = "[stopped after 20 seconds, there is more: narrow it with `path`]\n\
                [not searched: 1 binary, 2 larger than 10 MiB, 3 from an overlong line on, 4 unreadable, \
                5 deeper than 64 directories]\n\
                [6 .gitignore not heeded: too large or unreadable]\n";
    assert_eq!(all.told(), want);
}
