//! The settings in a configuration file of git's that name a place or a program.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// `core.hooksPath`.
    Hooks(PathBuf),
    /// `include.path`, or `includeIf.*.path`.
    Include(PathBuf),
    /// `core.worktree`.
    Top(PathBuf),
    /// `init.templateDir`.
    Template(PathBuf),
    /// A program, or a line for a shell.
    Command(Vec<u8>),
}

/// The settings in a configuration file's text that name a place or a program, as they are written there. A condition counts
/// as met. Places that begin with `%(prefix)/`, which stands for where git is installed, are left out.
pub(super) fn settings(text: &[u8]) -> Vec<Setting> {
    let mut text = Text(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text));
    let (mut section, mut all) = (Vec::new(), Vec::new());
    while let Some(first) = text.0.first() {
        match first {
            b'[' => section = text.section(),
            first if first.is_ascii_whitespace() => text.0 = &text.0[1..],
            // A comment has no key, and so no value.
            _ => {
                let key = text.word(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                if let Some(value) = text.value() {
                    all.extend(setting(&section, &key, value));
                }
            }
        }
    }
    all
}

fn setting(section: &[u8], key: &[u8], value: Vec<u8>) -> Option<Setting> {
    let place = match (section, key) {
        (b"core", b"hookspath") => Setting::Hooks,
        (b"core", b"worktree") => Setting::Top,
        (b"init", b"templatedir") => Setting::Template,
        (b"include" | b"includeif", b"path") => Setting::Include,
        _ => return is_command(section, key, &value).then_some(Setting::Command(value)),
    };
    let path = value.strip_prefix(b":(optional)").unwrap_or(&value);
    // A text ends there.
    let path = path.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_one = !path.is_empty() && !path.starts_with(b"%(prefix)/");
    is_one.then(|| place(PathBuf::from(OsString::from_vec(path.to_vec()))))
}

/// Whether git runs the value without being told to by its name, by `git help config`. An alias is a person's own command.
fn is_command(section: &[u8], key: &[u8], value: &[u8]) -> bool {
    match section {
        b"core" => {
            const KEYS: [&[u8]; 7] =
                [b"fsmonitor", b"sshcommand", b"editor", b"pager", b"askpass", b"gitproxy", b"alternaterefscommand"];
            KEYS.contains(&key)
        }
        b"submodule" => key == b"update" && value.first() == Some(&b'!'),
        b"remote" => match key {
            b"url" | b"pushurl" => value.starts_with(b"ext::"),
            _ => matches!(key, b"uploadpack" | b"receivepack"),
        },
        b"pager" => true,
        b"filter" => matches!(key, b"clean" | b"smudge" | b"process"),
        b"diff" => matches!(key, b"command" | b"textconv" | b"external"),
        b"merge" => key == b"driver",
        b"sequence" => key == b"editor",
        b"credential" => key == b"helper",
        b"gpg" => matches!(key, b"program" | b"defaultkeycommand"),
        b"interactive" => key == b"difffilter",
        b"difftool" | b"mergetool" | b"guitool" | b"browser" | b"man" => matches!(key, b"cmd" | b"path"),
        b"trailer" => matches!(key, b"cmd" | b"command"),
        b"hook" | b"tar" => key == b"command",
        b"uploadpack" => key == b"packobjectshook",
        b"gc" => key == b"recentobjectshook",
        b"imap" => key == b"tunnel",
        b"sendemail" => {
            const KEYS: [&[u8]; 5] = [b"sendmailcmd", b"smtpserver", b"tocmd", b"cccmd", b"headercmd"];
            KEYS.contains(&key)
        }
        _ => false,
    }
}

/// What is left of a text.
struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The byte behind a backslash. The end of a line is one, however it is written.
    fn escaped(&mut self) -> Option<u8> {
        let byte = self.next()?;
        match (byte, self.0.first()) {
            (b'\r', Some(b'\n')) => self.next(),
            _ => Some(byte),
        }
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
        let (mut value, mut kept, mut quoted) = (Vec::new(), 0, false);
        while let Some(byte) = self.next() {
            match byte {
                b'\n' => break,
                b'"' => quoted = !quoted,
                b'#' | b';' if !quoted => {
                    self.skip_line();
                    break;
                }
                b'\\' => match self.escaped() {
                    None | Some(b'\n') => kept = value.len(),
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
                byte if !quoted && is_space(byte) => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                }
                byte => {
                    value.push(byte);
                    kept = value.len();
                }
            }
        }
        value.truncate(kept);
        Some(value)
    }
}

/// What git takes for a blank.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn settings_are_read_as_git_writes_them_and_people_do() {
        let hooks = |path: &str| vec![Setting::Hooks(path.into())];
        let include = |path: &str| vec![Setting::Include(path.into())];
        let runs = |line: &str| Setting::Command(line.into());
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
                "[include]\npath = %(prefix)/inc\n[remote \"core\"]\nhooksPath = a\n[core]\npath = b\nhooksPath\nhooksPath =\n",
                vec![],
            ),
            ("[core\nhooksPath = a", hooks("a")),
            ("[include]\npath = ~/inc\n", include("~/inc")),
            ("[core]\nworktree = ../../sub\n", vec![Setting::Top("../../sub".into())]),
            ("[includeIf \"gitdir:/a]b/\"] path = inc\n", include("inc")),
            ("[includeIf \"gitdir:/a\\\"]b/\"] path = inc\n", include("inc")),
            ("[core\\] hooksPath = a\n", hooks("a")),
            ("[core]\nhooksPath = \"a#b;c\" # d\n", hooks("a#b;c")),
            ("[core]\nhooksPath = a\\\r\nb\n", hooks("ab")),
            ("[core]\nhooksPath = a\\\rb\n", hooks("a\rb")),
            ("[core]\nhooksPath = \r a\x0c \n", hooks("a\x0c")),
            ("[core]\nhooksPath = a \\\n\n", hooks("a ")),
            ("[core]\nhooksPath = %x\nhooksPath = a\0b\n", [hooks("%x"), hooks("a")].concat()),
            ("[alias]\n a = \"!./x y\"\n b = log\n", vec![]),
            ("[init] templateDir = ~/t\n", vec![Setting::Template("~/t".into())]),
            (
                "[remote \"o\"]\nurl = https://x/y\nurl = ext::sh x\nuploadpack = ./u\n",
                vec![runs("ext::sh x"), runs("./u")],
            ),
            ("[submodule \"s\"]\nupdate = rebase\nupdate = !x\n[diff]\ncolor = x\n", vec![runs("!x")]),
            ("[filter \"f\"]\nclean = x; no\nrequired\n[pager]\nlog = p\n", vec![runs("x"), runs("p")]),
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
