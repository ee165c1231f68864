use serde_json::json;

use super::forge::{Forge, event};

fn descriptor(more: serde_json::Value) -> String {
    let mut data = json!({ "version": 1, "mode": "one-shot", "provider": "spawn" });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event("subagent/descriptor", data)
}

// D-71
#[test]
fn a_descriptor_is_missing() {
    let forge = Forge::family();
    forge.events("B", |events| drop(events.remove(2)));
    forge.check(&[("B", "descriptor-missing", None)]);
}

// D-71
#[test]
fn a_second_descriptor() {
    let forge = Forge::family();
    let end = forge.len("B");
    forge.events("B", |events| {
        events.insert(3, descriptor(json!({})));
        events.push(descriptor(json!({})));
    });
    forge.check(&[("B", "descriptor-duplicated", Some(3)), ("B", "descriptor-duplicated", Some(end + 1))]);
}

// D-71
#[test]
fn a_descriptor_of_another_version() {
    let forge = Forge::family();
    forge.events("B", |events| events[2] = descriptor(json!({ "version": 9 })));
    forge.check(&[("B", "descriptor-unknown-version", Some(2))]);
}

// D-71
#[test]
fn a_descriptor_behind_the_first_turn() {
    let forge = Forge::family();
    let turn = forge.first("B", "turn/start");
    forge.events("B", |events| {
        let descriptor = events.remove(2);
        events.insert(turn, descriptor);
    });
    forge.check(&[("B", "descriptor-late", Some(turn as u64))]);
}

// D-29, D-71
#[test]
fn a_child_may_use_no_tool_that_its_parent_could_not() {
    let forge = Forge::family();
    let held = json!({ "toolFilter": { "allow": ["read", "list", "write"], "deny": ["write"] } });
    forge.events("A", |events| events[2] = descriptor(held.clone()));
    forge.check(&[("B", "filter-wider", Some(2))]);
    let wider = [
        json!({}),
        json!({ "toolFilter": { "deny": ["write"] } }),
        json!({ "toolFilter": { "allow": ["read", "write"] } }),
        json!({ "toolFilter": { "allow": ["bash"] } }),
    ];
    for filter in wider {
        forge.events("B", |events| events[2] = descriptor(filter));
        forge.check(&[("B", "filter-wider", Some(2))]);
    }
    let within = [
        held,
        json!({ "toolFilter": { "allow": ["read"] } }),
        json!({ "toolFilter": { "allow": ["read", "write"], "deny": ["write"] } }),
    ];
    for filter in within {
        forge.events("B", |events| events[2] = descriptor(filter));
        forge.check(&[]);
    }
}

// D-26, D-71
#[test]
fn a_child_is_held_to_its_parents_limit_of_depth() {
    let forge = Forge::family();
    let limit = |name: &str, more| forge.events(name, |events| events[2] = descriptor(more));
    limit("A", json!({ "maxDepth": 3 }));
    for wider in [json!({}), json!({ "maxDepth": 4 })] {
        limit("B", wider);
        forge.check(&[("B", "depth-limit-wider", Some(2))]);
    }
    for within in [2, 3] {
        limit("B", json!({ "maxDepth": within }));
        forge.check(&[]);
    }
    // A child stands within what it is held to, whatever its parent was.
    limit("B", json!({ "maxDepth": 1 }));
    forge.check(&[("B", "depth-beyond-limit", Some(2))]);
    limit("A", json!({}));
    forge.check(&[("B", "depth-beyond-limit", Some(2))]);
}
