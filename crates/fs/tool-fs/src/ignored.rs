//! What git would ignore, as far as `.gitignore` files say so.

use std::ffi::OsStr;
use std::path::Path;

use fs::{Directory, FsError};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::search::Ignored;

/// The name of a file of rules.
pub(crate) const FILE: &str = ".gitignore";

/// The largest file of rules that is read, in bytes.
pub(crate) const MAX_RULES_BYTES: u64 = 64 * 1024;

/// The longest rule, in bytes.
const MAX_RULE_BYTES: usize = 1024;

/// The most rules that hold in one place.
const MAX_RULES: usize = 1000;

/// The rules of the directories from some top down to here.
pub(crate) struct Rules {
    ignored: Ignored,
    stack: Vec<Gitignore>,
    /// How many files of rules do not count, for they are too large, too many, or unreadable.
    pub(crate) left_out: usize,
}

/// How many files of rules held before a directory was entered.
#[derive(Clone, Copy)]
pub(crate) struct Before(usize);

impl Rules {
    pub(crate) fn new(ignored: Ignored) -> Self {
        Self { ignored, stack: Vec::new(), left_out: 0 }
    }

    /// Takes in the rules that `directory` holds; the path is its own, absolute.
    pub(crate) fn enter(&mut self, directory: &dyn Directory, path: &Path) -> Before {
        let before = self.before();
        if self.ignored == Ignored::LeftOut {
            self.add(path, directory.read(OsStr::new(FILE), MAX_RULES_BYTES));
        }
        before
    }

    pub(crate) fn before(&self) -> Before {
        Before(self.stack.len())
    }

    pub(crate) fn leave(&mut self, before: Before) {
        self.stack.truncate(before.0);
    }

    pub(crate) fn add(&mut self, directory: &Path, text: Result<Vec<u8>, FsError>) {
        let text = match text {
            Ok(text) => text,
            // Git does not follow a link here either.
            Err(FsError::NotFound(_) | FsError::NotAFile { .. } | FsError::IsADirectory(_) | FsError::Denied(..)) => {
                return;
            }
            Err(_) => {
                self.left_out += 1;
                return;
            }
        };
        let room = MAX_RULES - self.stack.iter().map(Gitignore::len).sum::<usize>();
        match compiled(directory, &text, room) {
            Some(rules) if rules.is_empty() => {}
            Some(rules) => self.stack.push(rules),
            None => self.left_out += 1,
        }
    }

    /// Whether something is left out. The innermost rule that fits decides, and in one file the last.
    pub(crate) fn leave_out(&self, path: &Path, is_directory: bool) -> bool {
        if self.ignored == Ignored::Included {
            return false;
        }
        if path.file_name() == Some(OsStr::new(".git")) {
            return true;
        }
        let said = self.stack.iter().rev().map(|rules| rules.matched(path, is_directory));
        match said.into_iter().find(|said| !said.is_none()) {
            Some(Match::Ignore(_)) => true,
            Some(Match::Whitelist(_) | Match::None) | None => false,
        }
    }
}

/// The rules of one file, all or none: with half of them, what the other half brings back would be missed.
fn compiled(directory: &Path, text: &[u8], room: usize) -> Option<Gitignore> {
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut builder = GitignoreBuilder::new(directory);
    let mut count = 0;
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        count += 1;
        if count > room || line.len() > MAX_RULE_BYTES {
            return None;
        }
        // One that is no rule is none, as for git; the others still are.
        let _no_rule = str::from_utf8(line).map(|line| builder.add_line(None, line).is_ok());
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(files: &[(&str, &str)]) -> Rules {
        let mut rules = Rules::new(Ignored::LeftOut);
        for (directory, text) in files {
            rules.add(Path::new(directory), Ok(text.as_bytes().to_vec()));
        }
        rules
    }

    fn check(files: &[(&str, &str)], path: &str, want: bool) {
        let is_directory = path.ends_with('/');
        let said = rules(files).leave_out(Path::new(path.trim_end_matches('/')), is_directory);
        assert_eq!(said, want, "{files:?} {path}");
    }

    #[test]
    fn the_innermost_rule_decides_and_then_the_last() {
        check(&[("/w", "*.o\n/top\ndir/\na/b\n")], "/w/x/y.o", true);
        check(&[("/w", "/top")], "/w/top", true);
        check(&[("/w", "/top")], "/w/x/top", false);
        check(&[("/w", "dir/")], "/w/x/dir/", true);
        check(&[("/w", "dir/")], "/w/x/dir", false);
        check(&[("/w", "a/b")], "/w/x/a/b", false);
        check(&[("/w", "*.o\n!keep.o")], "/w/keep.o", false);
        check(&[("/w", "!keep.o\n*.o")], "/w/keep.o", true);
        check(&[("/w", "*.o"), ("/w/x", "!*.o")], "/w/x/y.o", false);
        check(&[("/w", "!*.o"), ("/w/x", "*.o")], "/w/x/y.o", true);
        check(&[("/w", "\u{feff}a\r\n#b\n\\#c\nd \n")], "/w/a", true);
        check(&[("/w", "#b\n\\#c\nd \n[z-a]\nok")], "/w/#c", true);
        check(&[("/w", "#b\n\\#c\nd \n[z-a]\nok")], "/w/ok", true);
        check(&[("/w", "#b")], "/w/b", false);
        check(&[], "/w/.git/", true);
        check(&[], "/w/.git", true);
        check(&[("/w", "!.git")], "/w/.git/", true);
        check(&[], "/w/.github/", false);
        check(&[("/", "*.o")], "/w/y.o", true);
    }

    #[test]
    fn too_many_rules_are_none() {
        let many = |count: usize| (0..count).map(|n| format!("f{n}\n")).collect::<String>();
        let fits = rules(&[("/w", &many(MAX_RULES))]);
        assert_eq!((fits.left_out, fits.leave_out(Path::new("/w/f1"), false)), (0, true));
        let over = rules(&[("/w", &many(MAX_RULES + 1))]);
        assert_eq!((over.left_out, over.leave_out(Path::new("/w/f1"), false)), (1, false));
        let together = rules(&[("/w", &many(MAX_RULES - 1)), ("/w/x", "a\nb\n"), ("/w/x/y", "c")]);
        assert_eq!((together.left_out, together.leave_out(Path::new("/w/x/y/c"), false)), (1, true));
        assert_eq!(rules(&[("/w", &"x".repeat(MAX_RULE_BYTES + 1))]).left_out, 1);
    }
}
