//! What is known of a child's tool calls until they are done.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol::v1::schema::{Meta, ToolCallContent, ToolCallLocation, ToolKind};

use crate::activity::{SAID, brief};

/// How many calls are known by name at the same time.
const MOST_CALLS: usize = 1_024;

/// How many paths of one call are known.
const MOST_PATHS: usize = 16;

/// How much is kept of all calls beside their titles, in bytes.
const ROOM: usize = 1024 * 1024;

#[derive(Default)]
pub(crate) struct Calls {
    known: HashMap<String, Call>,
    kept: usize,
}

#[derive(Default)]
struct Call {
    title: Option<Arc<str>>,
    kind: Option<ToolKind>,
    paths: Vec<PathBuf>,
    output: String,
}

/// What a call that is done leaves to look at.
#[derive(Default)]
pub(crate) struct Done {
    /// What it wrote, where that was told apart from its result.
    pub(crate) output: String,
    /// What it was to change.
    pub(crate) changes: Vec<PathBuf>,
}

impl Calls {
    /// The title of a call: what is said now, or what was said last.
    pub(crate) fn title(&mut self, id: &str, said: Option<&str>) -> Arc<str> {
        if let Some(said) = said.filter(|said| !said.trim().is_empty()) {
            let title = brief(said);
            if let Some(call) = self.call(id) {
                call.title = Some(title.clone());
            }
            return title;
        }
        let id = short(id);
        self.known.get(id).and_then(|call| call.title.clone()).unwrap_or_else(|| match id.is_empty() {
            true => "a tool call".into(),
            false => format!("the tool call {}", brief(id)).into(),
        })
    }

    /// More is said of a call.
    pub(crate) fn note(
        &mut self,
        id: &str,
        kind: Option<ToolKind>,
        locations: &[ToolCallLocation],
        content: &[ToolCallContent],
        meta: Option<&Meta>,
    ) {
        let others = self.kept - self.known.get(short(id)).map_or(0, Call::kept);
        let room = ROOM - others;
        let Some(call) = self.call(id) else { return };
        call.kind = kind.or(call.kind);
        let diffs = content.iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(&diff.path),
            _ => None,
        });
        for path in locations.iter().map(|location| &location.path).chain(diffs) {
            let fits = call.paths.len() < MOST_PATHS && call.kept() + path.as_os_str().len() <= room;
            if fits && is_plain(path) && !call.paths.contains(path) {
                call.paths.push(path.clone());
            }
        }
        // Not of the protocol, but what is known to send a command's output apart calls it so.
        let output = meta.and_then(|meta| meta.get("terminal_output_delta")?.get("data")?.as_str());
        if let Some(output) = output {
            call.output.push_str(&output[output.ceil_char_boundary(output.len().saturating_sub(SAID))..]);
            let paths = call.kept() - call.output.len();
            let begins = call.output.len().saturating_sub(SAID.min(room - paths));
            call.output.drain(..call.output.ceil_char_boundary(begins));
        }
        let kept = call.kept();
        self.kept = others + kept;
    }

    /// What is to be looked at, now that a call is done. Its title stays.
    pub(crate) fn done(&mut self, id: &str) -> Done {
        let Some(call) = self.known.get_mut(short(id)) else { return Done::default() };
        self.kept -= call.kept();
        let (paths, output) = (std::mem::take(&mut call.paths), std::mem::take(&mut call.output));
        let is_change = matches!(call.kind, Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move));
        Done { output, changes: if is_change { paths } else { Vec::new() } }
    }

    fn call(&mut self, id: &str) -> Option<&mut Call> {
        let id = short(id);
        if self.known.len() == MOST_CALLS && !self.known.contains_key(id) {
            return None;
        }
        Some(self.known.entry(id.to_owned()).or_default())
    }
}

impl Call {
    /// In bytes.
    fn kept(&self) -> usize {
        self.output.len() + self.paths.iter().map(|path| path.as_os_str().len()).sum::<usize>()
    }
}

/// An id, no longer than ids are.
pub(crate) fn short(id: &str) -> &str {
    &id[..id.floor_char_boundary(256)]
}

/// Whether it can stand in a line.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && path.to_str().is_some_and(|path| !path.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::Diff;
    use serde_json::json;

    use super::*;

    fn meta(data: &str) -> Meta {
        let meta = json!({ "terminal_output_delta": { "terminal_id": "t", "data": data } });
        meta.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_said_piece_by_piece_is_there_at_the_end_and_once() {
        let mut calls = Calls::default();
        let place = |path: &str| ToolCallLocation::new(path);
        calls.note("a", Some(ToolKind::Edit), &[place("/w/x"), place("relative")], &[], Some(&meta("one ")));
        let diff = ToolCallContent::Diff(Diff::new("/w/y", "new"));
        calls.note("a", None, &[place("/w/x"), place("/w/\n")], &[diff], Some(&meta("two")));
        let done = calls.done("a");
        assert_eq!((done.output.as_str(), &*done.changes), ("one two", &["/w/x".into(), "/w/y".into()][..]));
        assert_eq!(calls.kept, 0);
        assert!(calls.done("a").changes.is_empty() && calls.done("never").output.is_empty());
        // Where a command works is nothing that it changes.
        calls.note("b", Some(ToolKind::Execute), &[place("/w")], &[], None);
        assert!(calls.done("b").changes.is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_of_output_it_is_the_end() {
        let mut calls = Calls::default();
        for n in 0..2 * MOST_CALLS {
            calls.note(&n.to_string(), None, &[], &[], Some(&meta(&"é".repeat(SAID))));
            calls.note(&n.to_string(), None, &[], &[], Some(&meta("end")));
            assert!(calls.kept <= ROOM, "{}", calls.kept);
        }
        assert!(calls.known.len() == MOST_CALLS && calls.kept > ROOM - SAID);
        let many: Vec<_> = (0..100).map(|n| ToolCallLocation::new(format!("/{n}/{}", "x".repeat(4_000)))).collect();
        calls.note("0", Some(ToolKind::Edit), &many, &[], None);
        assert!(calls.kept <= ROOM, "{}", calls.kept);
        let first = calls.done("0").output;
        assert!(first.len() <= SAID && first.ends_with("éend"), "{}", first.len());
        calls.note("0", Some(ToolKind::Edit), &many, &[], None);
        assert!(calls.done("0").changes.len() <= MOST_PATHS);
        (0..MOST_CALLS).for_each(|n| drop(calls.done(&n.to_string())));
        assert_eq!(calls.kept, 0);
    }
}
