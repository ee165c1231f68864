//! The one place where what differs from run to run becomes the same.

use std::collections::BTreeMap;

use crate::run::logs::Log;
use crate::run::world::World;

/// Sessions in the order in which a reader meets them: step by step, those of a run before their children, each with its
/// own. A name is for good, also where the log is removed.
#[derive(Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Names the sessions that are new.
    pub(super) fn meet(&mut self, logs: &BTreeMap<String, Log>) {
        // Ids sort by the time they were minted.
        for (id, log) in logs {
            if log.header()["parentSession"].is_null() {
                self.add(id, logs);
            }
        }
        assert!(logs.keys().all(|id| self.0.contains(id)), "a child without its parent");
    }

    fn add(&mut self, id: &str, logs: &BTreeMap<String, Log>) {
        if !self.0.iter().any(|known| known == id) {
            self.0.push(id.to_owned());
        }
        let children = logs.iter().filter(|(_, log)| log.header()["parentSession"] == id);
        let mut children: Vec<&String> = children.map(|(child, _)| child).collect();
        // As the parent tells of them, which is the order in which it asked for them.
        let told = |child: &String| logs[id].text().find(child.as_str()).unwrap_or(usize::MAX);
        children.sort_by_key(|child| told(child));
        children.into_iter().for_each(|child| self.add(child, logs));
    }

    pub(super) fn sessions(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Ids in the place of `$1`, `$2`…
    pub(super) fn fill_in(&self, arg: &str) -> String {
        // `$12` is not `$1` and a 2.
        let numbered = self.0.iter().enumerate().rev();
        numbered.fold(arg.to_owned(), |arg, (at, id)| arg.replace(&format!("${}", at + 1), id))
    }

    /// Names in the place of ids, places and times.
    pub(super) fn normal(&self, text: &str, world: &World) -> String {
        let mut text = text.to_owned();
        for (at, id) in self.0.iter().enumerate() {
            text = text.replace(id, &format!("<session {}>", at + 1));
        }
        for (place, name) in [("area/root", "<root>"), ("area", "<parent>"), ("home", "<home>"), ("", "<base>")] {
            let place = world.path(place);
            text = text.replace(place.to_str().unwrap().trim_end_matches('/'), name);
        }
        for (before, what, sort) in MOMENTS {
            text = after_each(&text, before, what, sort);
        }
        counted(&text)
    }
}

type Sort = fn(char) -> bool;

/// What stands behind these words is not the same twice.
const MOMENTS: [(&str, &str, Sort); 9] = [
    ("\"createdAt\":", "<time>", |c| c.is_ascii_digit()),
    ("\"time\":", "<time>", |c| c.is_ascii_digit()),
    ("Date: ", "<date>", |c| c.is_ascii_digit() || c == '-'),
    ("process ", "<pid>", |c| c.is_ascii_digit()),
    (".torn-", "<time>", |c| c.is_ascii_digit()),
    ("> · ", "<time> ", |c| c.is_ascii_digit() || "-: ".contains(c)),
    (" was killed after ", "<time>", |c| c.is_ascii_digit()),
    ("started ", "<time>", |c| c.is_ascii_digit() || "-: ".contains(c)),
    // That of a child without a log, whose name nobody else has.
    ("\"session\":\"", "<child>", |c| c.is_ascii_hexdigit() || c == '-'),
];

/// How often a word may stand in a row before it is counted.
const MANY: usize = 10;

/// Says how often a word comes, where it comes again and again.
fn counted(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let told = words.chunk_by(|one, other| one == other).map(|same| match same {
        [word, ..] if same.len() > MANY && *word != " " => format!("{word}×{} ", same.len()),
        few => few.concat(),
    });
    told.collect()
}

/// Puts `what` in the place of the characters of a sort behind each `before`.
fn after_each(text: &str, before: &str, what: &str, sort: Sort) -> String {
    let mut parts = text.split(before);
    let mut normal = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(sort);
        normal.push_str(before);
        normal.push_str(if rest.len() < part.len() { what } else { "" });
        normal.push_str(rest);
    }
    normal
}

#[test]
fn a_flood_is_counted() {
    assert_eq!(counted(&format!("a {}c\nb b ", "b ".repeat(11))), "a b ×11 c\nb b ");
    let indented = format!("{}a", " ".repeat(40));
    assert_eq!(counted(&indented), indented);
}

#[test]
fn only_what_differs_is_replaced() {
    let (before, what, sort) = MOMENTS[2];
    assert_eq!(after_each("Date: 2026-11-30\nDate: soon", before, what, sort), "Date: <date>\nDate: soon");
}
