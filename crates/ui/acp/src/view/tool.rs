//! How a tool call looks to a client: what is known by the tool's name, from arguments that nobody has checked.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Content, ContentBlock, Diff, ImageContent, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use sandbox::one_line;
use serde::Deserialize;
use serde_json::Value;
use session::{ToolCalled, ToolReturned};

/// The longest arguments that are shown raw, in bytes.
const MOST_RAW: usize = 64 * 1024;
/// The longest text of a file that is shown as a change, in bytes.
const MOST_DIFF: usize = 256 * 1024;
/// How much of what is done stands in the title, in characters.
const MOST_TITLE: usize = 120;

/// What a call says of itself.
pub(super) struct Shown {
    pub(super) kind: ToolKind,
    pub(super) title: String,
    pub(super) path: Option<PathBuf>,
}

/// By the tool's name and whatever its arguments are.
pub(super) fn shown(name: &str, arguments: &Value, root: &Path) -> Shown {
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let path = text("path").map(|path| root.join(path));
    let (kind, what) = match name {
        "read" | "list" => (ToolKind::Read, text("path")),
        "write" | "edit" => (ToolKind::Edit, text("path")),
        "glob" | "grep" => (ToolKind::Search, text("pattern")),
        "bash" => (ToolKind::Execute, text("command")),
        _ => (ToolKind::Other, text("description").or_else(|| text("prompt"))),
    };
    let title = match what {
        Some(what) => format!("{name}: {}", one_line(&what.chars().take(MOST_TITLE).collect::<String>())),
        None => name.to_owned(),
    };
    Shown { kind, title, path }
}

pub(super) fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

/// A call that has begun.
pub(super) fn begun(call: &ToolCalled, root: &Path) -> ToolCall {
    let arguments = arguments(&call.arguments);
    let Shown { kind, title, path } = shown(&call.name, &arguments, root);
    let raw = (call.arguments.len() <= MOST_RAW && !arguments.is_null()).then_some(arguments);
    ToolCall::new(call.call_id.clone(), title)
        .name(call.name.to_string())
        .kind(kind)
        .status(ToolCallStatus::InProgress)
        .locations(path.into_iter().map(ToolCallLocation::new).collect())
        .raw_input(raw)
}

/// What a running call shows: all of it that is to be seen, in place of what was shown before.
pub(super) fn going_on(call_id: &str, text: &str) -> ToolCallUpdate {
    let fields = ToolCallUpdateFields::new().content(vec![said(text)]);
    ToolCallUpdate::new(call_id.to_owned(), fields)
}

/// A call that was answered; `before` stands in front of the answer.
pub(super) fn ended(call: Option<&ToolCalled>, result: &ToolReturned, before: Option<&str>) -> ToolCallUpdate {
    let status = if result.is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    let mut content: Vec<_> = before.map(said).into_iter().collect();
    let changed = result.meta.as_ref().filter(|_| !result.is_error).and_then(|meta| changed(meta.get()));
    let diffs = changed.map(|changed| changed.diffs(call)).unwrap_or_default();
    if diffs.is_empty() {
        content.extend(result.content.iter().filter_map(part));
    } else {
        content.extend(diffs.into_iter().map(ToolCallContent::Diff));
    }
    let raw = result.meta.as_ref().filter(|meta| meta.get().len() <= MOST_RAW);
    let raw = raw.and_then(|meta| serde_json::from_str::<Value>(meta.get()).ok());
    let fields = ToolCallUpdateFields::new().status(status).content(content).raw_output(raw);
    ToolCallUpdate::new(result.call_id.clone(), fields)
}

fn said(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::from(text.to_owned())))
}

fn part(part: &llm::Content) -> Option<ToolCallContent> {
    match part {
        llm::Content::Text { text } => Some(said(text)),
        llm::Content::Image { media_type, data } => {
            let image = ImageContent::new(data.to_string(), media_type.to_string());
            Some(ToolCallContent::Content(Content::new(ContentBlock::Image(image))))
        }
        llm::Content::Thinking { .. } | llm::Content::ToolCall(_) | llm::Content::ToolResult { .. } => None,
    }
}

/// What a tool that changes a file says of it, in the meta of its result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    path: PathBuf,
    created: bool,
    diff: Option<String>,
}

fn changed(meta: &str) -> Option<Changed> {
    serde_json::from_str(meta).ok()
}

impl Changed {
    /// A change for each piece of it; none where that is not known.
    fn diffs(&self, call: Option<&ToolCalled>) -> Vec<Diff> {
        let of = |old: Option<String>, new: String| Diff::new(self.path.clone(), new).old_text(old);
        if self.created {
            let arguments = call.map(|call| arguments(&call.arguments));
            let content = arguments.as_ref().and_then(|arguments| arguments.get("content")).and_then(Value::as_str);
            let content = content.filter(|content| content.len() <= MOST_DIFF);
            return content.map(|content| of(None, content.to_owned())).into_iter().collect();
        }
        let hunks = self.diff.as_deref().map(hunks).unwrap_or_default();
        hunks.into_iter().map(|(old, new)| of(Some(old), new)).collect()
    }
}

/// The two sides of each piece of a unified diff.
fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@ ") {
            hunks.push(Default::default());
            continue;
        }
        let Some((old, new)) = hunks.last_mut() else { continue };
        match line.split_at_checked(1) {
            Some((" ", text)) => {
                old.push_str(text);
                new.push_str(text);
            }
            Some(("-", text)) => old.push_str(text),
            Some(("+", text)) => new.push_str(text),
            // "\ No newline at end of file"
            _ => {}
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_difference_has_two_sides() {
        let diff = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n@@ -9 +9,2 @@\n-x\n+x\n+y\n\\ No newline\n";
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        assert_eq!(hunks(diff), [pair("one\ntwo\n", "one\nthree\n"), pair("x\n", "x\ny\n")]);
        assert_eq!(hunks("no difference"), []);
    }

    #[test]
    fn whatever_the_arguments_are_there_is_a_title() {
        let root = Path::new("/ws");
        for text in ["", "null", "[1]", "{\"path\": 3}", "{\"path\": \"a\\nb\"}", "{"] {
            for name in ["read", "bash", "made up"] {
                let shown = shown(name, &arguments(text), root);
                assert!(shown.title.starts_with(name) && !shown.title.contains('\n'), "{}", shown.title);
            }
        }
        assert_eq!(shown("read", &arguments("{\"path\": \"a\"}"), root).path.unwrap(), root.join("a"));
    }
}
