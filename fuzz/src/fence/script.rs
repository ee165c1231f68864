//! Scripts: a line an operation, in words, so that what was found can be read.

use std::path::{Path, PathBuf};

use sandbox::Mode;

use super::meddle::Meddle;
use crate::world::World;

/// What one line says.
#[derive(Debug)]
pub(crate) enum Line {
    /// `home inside`: Tether's own is in the root. Before the fence is opened.
    HomeInside,
    /// `git hooks`, `git include`: where git's configuration leads. Before the fence is opened.
    Git(Setting),
    /// `move A B` and so on.
    Meddle(Meddle),
    /// `during move A B`: while the next edit holds the file.
    During(Meddle),
    /// `mode read-only`, `mode workspace-write`.
    Switch(Mode),
    /// `grant`: the next write or edit may write.
    Grant,
    /// `write PATH` and so on.
    Ask(Verb, String),
}

/// What is asked of a fence.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Write,
    Edit,
    Read,
    List,
    Stat,
    Walk,
    LeadsTo,
}

/// What git's configuration says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    Hooks,
    Include,
}

impl Line {
    /// Whether it may stand before the fence is opened.
    pub(crate) fn is_before(&self) -> bool {
        match self {
            Self::HomeInside | Self::Git(_) | Self::Meddle(_) => true,
            Self::During(_) | Self::Switch(_) | Self::Grant | Self::Ask(..) => false,
        }
    }
}

impl Setting {
    const ALL: [Self; 2] = [Self::Hooks, Self::Include];

    pub(crate) fn write(self, world: &World) {
        let config = world.at("ws/.git/config");
        // Whatever the lines before have made of it.
        if config.symlink_metadata().is_ok_and(|found| found.is_file()) {
            world.put("ws/.git/config", self.config());
        }
    }

    fn config(self) -> &'static str {
        match self {
            Self::Hooks => "[core]\n\thooksPath = .githooks\n",
            Self::Include => "[include]\n\tpath = ../more.conf\n",
        }
    }

    fn leads_to(self) -> &'static str {
        match self {
            Self::Hooks => ".githooks",
            Self::Include => "more.conf",
        }
    }
}

/// Where git's configuration leads as it is, relative to the root.
pub(crate) fn led_by_git(world: &World) -> Option<PathBuf> {
    let config = std::fs::read_to_string(world.at("ws/.git/config")).ok()?;
    let setting = Setting::ALL.into_iter().find(|setting| setting.config() == config)?;
    Some(setting.leads_to().into())
}

/// What a line says; nothing, where it is none. An `@` at the beginning of a path is the top of the world.
pub(crate) fn parse(line: &str, top: &Path) -> Option<Line> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Some(match word {
        "home" => Line::HomeInside,
        "git" if rest == "include" => Line::Git(Setting::Include),
        "git" => Line::Git(Setting::Hooks),
        "mode" if rest == "read-only" => Line::Switch(Mode::ReadOnly),
        "mode" => Line::Switch(Mode::WorkspaceWrite),
        "grant" => Line::Grant,
        "during" => Line::During(meddle(rest, top)?),
        "write" => Line::Ask(Verb::Write, path(rest, top)),
        "edit" => Line::Ask(Verb::Edit, path(rest, top)),
        "read" => Line::Ask(Verb::Read, path(rest, top)),
        "list" => Line::Ask(Verb::List, path(rest, top)),
        "stat" => Line::Ask(Verb::Stat, path(rest, top)),
        "walk" => Line::Ask(Verb::Walk, path(rest, top)),
        "leads-to" => Line::Ask(Verb::LeadsTo, path(rest, top)),
        _ => Line::Meddle(meddle(line, top)?),
    })
}

fn meddle(line: &str, top: &Path) -> Option<Meddle> {
    let mut words = line.split(' ');
    let word = words.next()?;
    let first = words.next()?.to_owned();
    let mut second = || words.next().map(str::to_owned);
    Some(match word {
        "move" => Meddle::Move(first, second()?),
        "swap" => Meddle::Swap(first, second()?),
        "link" => Meddle::Link(path(&first, top), second()?),
        "hard" => Meddle::Hard(first, second()?),
        "make" => Meddle::Make(first),
        "remove" => Meddle::Remove(first),
        "pipe" => Meddle::Pipe(first),
        "put" => Meddle::Put(first),
        _ => return None,
    })
}

/// A path as it is asked for. Escapes stand for what a line cannot hold, or should not have to: `\n`, `\r`, `\0`, `\e`,
/// `\\`, and `\l` for a name that is too long, `\d` for a way that is deep.
fn path(text: &str, top: &Path) -> String {
    let (mut path, text) = match text.strip_prefix('@') {
        Some(rest) => (top.to_string_lossy().into_owned(), rest),
        None => (String::new(), text),
    };
    let mut escaped = false;
    for c in text.chars() {
        match (std::mem::take(&mut escaped), c) {
            (false, '\\') => escaped = true,
            (true, 'n') => path.push('\n'),
            (true, 'r') => path.push('\r'),
            (true, '0') => path.push('\0'),
            (true, 'e') => path.push('\u{1b}'),
            (true, 'l') => path.push_str(&"l".repeat(256)),
            (true, 'd') => path.push_str(&"d/".repeat(40)),
            (_, c) => path.push(c),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        format!("{:?}", parse(line, Path::new("/top")))
    }

    #[test]
    fn lines_are_read() {
        assert_eq!(told("write a b"), r#"Some(Ask(Write, "a b"))"#);
        assert_eq!(told(r"read @/x\n\0\\"), r#"Some(Ask(Read, "/top/x\n\0\\"))"#);
        assert_eq!(told("during link @/outside ws/sub"), r#"Some(During(Link("/top/outside", "ws/sub")))"#);
        assert_eq!(told("move a b"), r#"Some(Meddle(Move("a", "b")))"#);
        assert_eq!(told("mode read-only"), "Some(Switch(ReadOnly))");
        for nothing in ["", "move a", "move", "writes x", "during write x"] {
            assert_eq!(told(nothing), "None", "{nothing}");
        }
    }
}
