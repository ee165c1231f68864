//! The form of the notes, and the table of promises.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};

use crate::promises::{self, Table};
use crate::report;
use crate::workspace::Workspace;

const STATES: [&str; 3] = ["proposed", "accepted", "rejected"];
const HEADINGS: [&str; 4] = ["## Problem", "## Decision", "## Alternatives rejected", "## Consequences"];
const LONGEST: usize = 70;

/// What is asked beside the form of the notes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    promises: Promises,
    show: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Promises {
    /// Those that a test names must exist.
    #[default]
    Known,
    /// Each that is due must have a test as well.
    Proven,
}

impl Ask {
    pub(crate) fn parse(flags: &[&str]) -> anyhow::Result<Self> {
        let mut ask = Self::default();
        for flag in flags {
            match *flag {
                "--promises" => ask.show = true,
                "--require" => ask.promises = Promises::Proven,
                other => bail!("`notes` knows --promises and --require, not `{other}`"),
            }
        }
        Ok(ask)
    }
}

pub(crate) fn run(workspace: &Workspace, ask: &Ask) -> anyhow::Result<()> {
    let notes = read(&workspace.root.join(".agents/notes"))?;
    let mut complaints: Vec<String> = notes.iter().flat_map(|note| note.complaints()).collect();
    let table = Table::of(workspace)?;
    complaints.extend(table.unknown());
    if ask.promises == Promises::Proven {
        complaints.extend(table.unproven());
    }
    if ask.show {
        print!("{table}");
    }
    let fine = format!("{} notes, {} of {} promises proven", notes.len(), table.proven(), promises::known().count());
    report("notes", &complaints, &fine)
}

struct Note {
    /// Relative to the folder of the notes.
    path: String,
    text: String,
}

impl Note {
    fn complaints(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut complain = |what: String| wrong.push(format!("{}: {what}", self.path));
        match self.path.split('/').collect::<Vec<_>>()[..] {
            [state, name] if STATES.contains(&state) => {
                if !is_named_well(name) {
                    complain("a note is named YYYY-MM-DD-topic.md, the topic in lower case with hyphens".to_owned());
                }
            }
            _ => complain(format!("a note belongs in one of {}", STATES.join(", "))),
        }
        let mut lines = self.text.lines().map(str::trim_end);
        for heading in HEADINGS {
            if !lines.any(|line| line == heading) {
                complain(format!("no `{heading}`, or not in its place: {}", HEADINGS.join(", ")));
                break;
            }
        }
        let length = self.text.lines().count();
        if length > LONGEST {
            complain(format!("{length} lines; a note is one page, at most {LONGEST}"));
        }
        wrong
    }
}

fn is_named_well(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".md") else { return false };
    let mut parts = stem.splitn(4, '-');
    let mut number = |digits: usize, most: u32| {
        parts.next().is_some_and(|part| {
            part.len() == digits && part.parse::<u32>().is_ok_and(|number| (1..=most).contains(&number))
        })
    };
    let dated = number(4, 9999) && number(2, 12) && number(2, 31);
    let topic = parts.next().unwrap_or_default();
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    dated && topic.split('-').all(plain)
}

/// Everything in the folder but its README, ordered.
fn read(folder: &Path) -> anyhow::Result<Vec<Note>> {
    let mut notes = Vec::new();
    collect(folder, "", &mut notes)?;
    notes.retain(|note| note.path != "README.md");
    notes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(notes)
}

fn collect(folder: &Path, within: &str, notes: &mut Vec<Note>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let path = format!("{within}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), notes)?;
        } else {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("reading {path}"))?;
            notes.push(Note { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "# T\n\n## Problem\n\n## Decision\n\n## Alternatives rejected\n\n## Consequences\n";

    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = Note { path: path.to_owned(), text: text.to_owned() }.complaints();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}\nshould say: {expected}");
        }
    }

    #[test]
    fn a_note_has_a_dated_name_in_a_state() {
        check("accepted/2026-11-30-owner-and-realm.md", GOOD, &[]);
        check("accepted/2026-13-30-owner.md", GOOD, &["YYYY-MM-DD"]);
        check("accepted/26-11-30-owner.md", GOOD, &["YYYY-MM-DD"]);
        check("accepted/2026-11-30-.md", GOOD, &["YYYY-MM-DD"]);
        check("accepted/2026-11-30-Owner.md", GOOD, &["YYYY-MM-DD"]);
        check("accepted/2026-11-30-owner.txt", GOOD, &["YYYY-MM-DD"]);
        check("2026-11-30-owner.md", GOOD, &["belongs in one of"]);
        check("shelved/2026-11-30-owner.md", GOOD, &["belongs in one of"]);
    }

    #[test]
    fn a_note_has_four_headings_in_order_on_one_page() {
        let path = "proposed/2026-11-30-x.md";
        check(path, &GOOD.replace("## Decision", "## Choice"), &["no `## Decision`"]);
        check(path, "## Decision\n## Problem\n## Alternatives rejected\n## Consequences\n", &["no `## Decision`"]);
        check(path, &format!("{GOOD}{}", "line\n".repeat(61)), &[]);
        check(path, &format!("{GOOD}{}", "line\n".repeat(62)), &["71 lines"]);
    }

    #[test]
    fn flags_are_read() {
        assert_eq!(Ask::parse(&[]).unwrap(), Ask { promises: Promises::Known, show: false });
        let both = Ask::parse(&["--promises", "--require"]).unwrap();
        assert_eq!(both, Ask { promises: Promises::Proven, show: true });
        assert!(Ask::parse(&["--promise"]).is_err());
    }
}
