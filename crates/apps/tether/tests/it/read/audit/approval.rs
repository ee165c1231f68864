//! What may be asked in a session, and what is said of who could answer.

use serde_json::json;

use super::forge::{Forge, event, policy};

fn asked(outcome: &str) -> [String; 2] {
    let asked = event("approval/asked", json!({ "requestId": 7, "tool": "bash", "reason": "write x" }));
    [asked, event("approval/decided", json!({ "requestId": 7, "outcome": outcome }))]
}

/// Takes the pin away, and says that nobody could be asked. Every other event stays where it was.
fn absent(forge: &Forge, name: &str) {
    forge.events(name, |events| {
        events[1] = events[2].replace(r#""provider":"#, r#""approval":"absent","provider":"#);
        events[2] = event("session/title", json!({ "title": "t", "source": "user" }));
    });
}

// D-09, D-71
#[test]
fn nobody_allows_what_is_never_asked() {
    let forge = Forge::family();
    let end = forge.len("B");
    for outcome in ["rejected", "cancelled", "unavailable"] {
        forge.events("B", |events| events.extend(asked(outcome)));
    }
    forge.check(&[]);
    forge.events("B", |events| events[end as usize + 1] = asked("allowed-once")[1].clone());
    forge.check(&[("B", "allowed-under-never", Some(end + 1))]);
    // A person may have let it ask again.
    forge.events("B", |events| events.insert(end as usize, policy("ask", "user")));
    forge.check(&[("B", "widening-approval", Some(end))]);
}

// D-71
#[test]
fn a_top_level_session_that_never_asks() {
    let forge = Forge::family();
    let end = forge.len("TOP");
    forge.events("TOP", |events| events.extend(asked("allowed-once")));
    // What the deployment says is in no log.
    forge.check(&[]);
    forge.events("TOP", |events| {
        events.push(policy("never", "user"));
        events.extend(asked("allowed-once"));
        events.push(policy("ask", "user"));
        events.extend(asked("allowed-once"));
    });
    forge.check(&[("TOP", "allowed-under-never", Some(end + 4))]);
}

// D-04, D-71
#[test]
fn nobody_could_be_asked() {
    let forge = Forge::family();
    for name in ["A", "B"] {
        absent(&forge, name);
    }
    forge.check(&[]);
    // Behind the capture, the parent may have come under one.
    forge.events("TOP", |events| events.push(policy("ask", "user")));
    forge.check(&[]);
    let end = forge.len("B");
    forge.events("B", |events| events.extend(asked("rejected")));
    forge.check(&[("A", "approval-not-absent", Some(1)), ("B", "approval-not-absent", Some(1))]);
    forge.events("B", |events| {
        events.truncate(end as usize);
        events.insert(1, policy("never", "delegation"));
    });
    forge.check(&[("A", "approval-not-absent", Some(1)), ("B", "pin-unfounded", Some(1))]);
}

// D-04, D-71
#[test]
fn a_parent_could_be_asked_and_its_child_says_that_nobody_could() {
    let forge = Forge::family();
    absent(&forge, "B");
    forge.check(&[("B", "approval-not-absent", Some(1))]);
    forge.check_below(&[forge.id("B")], &[("B", "approval-not-absent", Some(1))]);

    let asks = Forge::ran("", &["--sandbox", "read-only", "--approval", "ask", "spawn A { say hello }"]);
    absent(&asks, "A");
    asks.check(&[("A", "approval-not-absent", Some(1))]);
}

// D-04, D-71
#[test]
fn a_child_was_pinned_and_its_parent_says_that_nobody_could_be_asked() {
    let forge = Forge::family();
    absent(&forge, "A");
    forge.check(&[("A", "approval-not-absent", Some(1))]);
    // A session is held against its parent, and not for it.
    forge.check_below(&[forge.id("B")], &[]);
}
