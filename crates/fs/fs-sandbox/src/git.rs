//! What git's own configuration of a root leads to inside it. Git is not run for this: its files are read, forgivingly,
//! and a condition counts as met.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::asked::lexical;
use crate::fence::OpenError;
use crate::lands::lands;

/// How much of a configuration file is read, in bytes.
const MAX_CONFIG_BYTES: u64 = 256 * 1024;

/// How many configuration files are read, with those that they include.
const MAX_CONFIGS: usize = 16;

/// How many settings and links are looked at.
const MAX_LOOKS: usize = 4096;

/// The places inside `root`, which is canonical, that git is led to when it looks for configuration and for hooks.
pub(crate) fn leads_to(root: &Path) -> Result<BTreeSet<PathBuf>, OpenError> {
    let git = root.join(".git");
    let guarded = ["hooks", "config", "config.worktree"].map(|name| git.join(name));
    let mut search = Search { root, guarded, found: BTreeSet::new(), configs: Vec::new(), looks: 0 };
    search.hooks(&git.join("hooks"))?;
    for name in ["config", "config.worktree"] {
        search.config(git.join(name))?;
    }
    let mut next = 0;
    while let Some(config) = search.configs.get(next).cloned() {
        next += 1;
        for setting in settings(&content(&config)) {
            match setting {
                Setting::Hooks(path) => {
                    let hooks = root.join(path);
                    search.hooks(&hooks)?;
                }
                Setting::Include(path) => {
                    search.config(config.parent().unwrap_or(root).join(path))?;
                }
            }
        }
    }
    Ok(search.found)
}

struct Search<'a> {
    root: &'a Path,
    /// What is protected anyway.
    guarded: [PathBuf; 3],
    found: BTreeSet<PathBuf>,
    configs: Vec<PathBuf>,
    looks: usize,
}

impl Search<'_> {
    /// A place that git goes to, as what it is there for.
    fn led(&mut self, path: &Path, sought: Sought) -> Result<(), OpenError> {
        self.looks += 1;
        for place in lands(path).into_iter().chain([lexical(path)]) {
            let useless = sought == Sought::File && place.is_dir();
            let guarded = self.guarded.iter().any(|top| place.starts_with(top));
            if place.starts_with(self.root) && !useless && !guarded {
                self.found.insert(place);
            }
        }
        match self.looks {
            0..=MAX_LOOKS => Ok(()),
            count => Err(OpenError::TooManyProtected { count }),
        }
    }

    fn config(&mut self, path: PathBuf) -> Result<(), OpenError> {
        self.led(&path, Sought::File)?;
        if !path.is_file() || self.configs.contains(&path) {
            return Ok(());
        }
        if self.configs.len() == MAX_CONFIGS {
            // What is not read may name hooks.
            return Err(OpenError::TooManyConfigs { first_unread: path });
        }
        self.configs.push(path);
        Ok(())
    }

    /// A directory of hooks, each of which may be a link.
    fn hooks(&mut self, directory: &Path) -> Result<(), OpenError> {
        self.led(directory, Sought::Directory)?;
        for hook in directory.read_dir().into_iter().flatten().flatten() {
            if hook.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.led(&hook.path(), Sought::File)?;
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    File,
    Directory,
}

#[derive(Debug, PartialEq, Eq)]
enum Setting {
    /// `core.hooksPath`.
    Hooks(PathBuf),
    /// `include.path`, or `includeIf.*.path`.
    Include(PathBuf),
}

/// What a configuration file holds. Nothing, where it is none.
fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if is_file && let Ok(file) = open(path, flags, Mode::empty()).map(File::from) {
        // What could be read of it counts.
        let _read = file.take(MAX_CONFIG_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

/// The settings in a configuration file's text that name a place, as they are written there. Those that begin with `~`
/// or `%`, and stand for a place outside, are left out.
fn settings(text: &[u8]) -> Vec<Setting> {
    let mut text = Text(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let (mut section, mut all) = (Vec::new(), Vec::new());
    while let Some(first) = text.0.first() {
        match first {
            b'[' => section = text.section(),
            first if first.is_ascii_whitespace() => text.0 = &text.0[1..],
            // A comment has no key, and so no value.
            _ => {
                let key = text.word(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                let Some(value) = text.value() else { continue };
                let setting = match (&section[..], &key[..]) {
                    (b"core", b"hookspath") => Setting::Hooks,
                    (b"include" | b"includeif", b"path") => Setting::Include,
                    _ => continue,
                };
                let path = value.strip_prefix(b":(optional)").unwrap_or(&value);
                if !matches!(path.first(), None | Some(b'~' | b'%')) && !path.contains(&0) {
                    all.push(setting(PathBuf::from(OsString::from_vec(path.to_vec()))));
                }
            }
        }
    }
    all
}

/// What is left of a text.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip_line(&mut self) {
        while !matches!(self.next(), None | Some(b'\n')) {}
    }

    /// In lower case.
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> Vec<u8> {
        let end = self.0.iter().position(|byte| !belongs(*byte)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word.to_ascii_lowercase()
    }

    /// The name of a section, without that of its subsection.
    fn section(&mut self) -> Vec<u8> {
        self.next();
        let _blank = self.word(|byte| matches!(byte, b' ' | b'\t'));
        let name = self.word(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let mut quoted = false;
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b']' if !quoted => break,
                b'"' => quoted = !quoted,
                b'\\' if quoted => drop(self.next()),
                _ => {}
            }
        }
        name
    }

    /// The value after a key, up to the end of its line. None where there is none.
    fn value(&mut self) -> Option<Vec<u8>> {
        let _blank = self.word(|byte| matches!(byte, b' ' | b'\t'));
        if self.0.first() != Some(&b'=') {
            self.skip_line();
            return None;
        }
        self.next();
        let _blank = self.word(|byte| matches!(byte, b' ' | b'\t'));
        let (mut value, mut kept, mut quoted) = (Vec::new(), 0, false);
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'"' => quoted = !quoted,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'\\' => match self.next() {
                    None | Some(b'\n') => {}
                    Some(b'\r') if self.0.first() == Some(&b'\n') => drop(self.next()),
                    Some(byte) => {
                        value.push(match byte {
                            b'n' => b'\n',
                            b't' => b'\t',
                            b'b' => 8,
                            byte => byte,
                        });
                        kept = value.len();
                    }
                },
                byte => {
                    value.push(byte);
                    if quoted || !byte.is_ascii_whitespace() {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_are_read_as_git_writes_them_and_people_do() {
        let hooks = |path: &str| vec![Setting::Hooks(path.into())];
        let include = |path: &str| vec![Setting::Include(path.into())];
        for (text, want) in [
            ("[core]\n\thooksPath = .githooks\n", hooks(".githooks")),
            ("\u{feff}[CORE] HOOKSPATH=a # why\r\n", hooks("a")),
            ("[core]\n; hooksPath = no\n hookspath = \"a b \" ; c\n", hooks("a b ")),
            ("[core]\n\tbare\n\thooksPath = a \\\n b", hooks("a  b")),
            ("[core]\nhooksPath = a\\\\b\\\"c\n", hooks("a\\b\"c")),
            ("[core]\n?!\n[x \"]\"]\n[core]\nhooksPath = a\r\n", hooks("a")),
            ("[include]\npath = ../inc\n", include("../inc")),
            ("[includeIf \"gitdir:~/w/\"]\n\tpath = inc", include("inc")),
            ("[includeIf.onbranch]\npath = :(optional)inc", include("inc")),
            (
                "[include]\npath = ~/inc\n[remote \"core\"]\nhooksPath = a\n[core]\npath = b\nhooksPath\nhooksPath =\n",
                vec![],
            ),
            ("[core\nhooksPath = a", hooks("a")),
            ("[includeIf \"gitdir:/a]b/\"] path = inc\n", include("inc")),
            ("[includeIf \"gitdir:/a\\\"]b/\"] path = inc\n", include("inc")),
            ("[core\\] hooksPath = a\n", hooks("a")),
            ("[core]\nhooksPath = \"a#b;c\" # d\n", hooks("a#b;c")),
            ("[core]\nhooksPath = a\\\r\nb\n", hooks("ab")),
            ("[core]\nhooksPath = a\\\rb\n", hooks("a\rb")),
        ] {
            assert_eq!(settings(text.as_bytes()), want, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_its_end(text in "[\\[\\]a\\\\\"=#; \n\r]{0,40}") {
            let text = format!("{text}\n\"\n]\n[core]\nhooksPath = end\n");
            prop_assert_eq!(settings(text.as_bytes()), vec![Setting::Hooks("end".into())]);
        }
    }
}
