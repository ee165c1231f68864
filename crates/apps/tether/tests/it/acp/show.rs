//! What a client is sent, as a text to compare.

use serde_json::Value;

use crate::run::world::World;

/// Updates, a line each, with names in the place of what differs from run to run.
pub(super) fn shown(world: &World, sessions: &[&str], updates: &[Value]) -> String {
    joined(updates).iter().map(|update| normal(world, sessions, update) + "\n").collect()
}

/// Updates as they are told. Where words end up in one update or in two, and how often a running call is shown, is up to the
/// machine. What commands there are is told of every session.
pub(super) fn joined(updates: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for update in updates {
        let is_progress = update["sessionUpdate"] == "tool_call_update" && update.get("status").is_none();
        if is_progress || update["sessionUpdate"] == "available_commands_update" {
            continue;
        }
        match joined.last_mut() {
            Some(last) if is_speech(update) && same(last, update) => {
                let text = format!("{}{}", text(last), text(update));
                last["content"]["text"] = text.into();
            }
            _ => joined.push(update.clone()),
        }
    }
    joined
}

/// The text of a chunk of a message.
pub(super) fn text(update: &Value) -> &str {
    update["content"]["text"].as_str().unwrap_or_default()
}

/// Everything that the model said in these.
pub(super) fn said(updates: &[Value]) -> String {
    updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk").map(text).collect()
}

fn is_speech(update: &Value) -> bool {
    matches!(update["sessionUpdate"].as_str(), Some("agent_message_chunk" | "agent_thought_chunk"))
}

fn same(one: &Value, other: &Value) -> bool {
    one["sessionUpdate"] == other["sessionUpdate"] && one["messageId"] == other["messageId"]
}

/// Anything, on one line.
pub(super) fn normal(world: &World, sessions: &[&str], frame: &impl ToString) -> String {
    let mut text = frame.to_string();
    for (at, id) in sessions.iter().enumerate() {
        text = text.replace(id, &format!("<session {}>", at + 1));
    }
    for id in world.logs().keys() {
        text = text.replace(id, "<child>");
    }
    for (place, name) in [("area/root", "<root>"), ("area", "<parent>"), ("home", "<home>"), ("", "<base>")] {
        text = text.replace(world.path(place).to_str().unwrap().trim_end_matches('/'), name);
    }
    text
}
