//! What is written to a log after its creation.

use serde_json::json;

use super::forge::{Forge, event, mode, policy};

// D-71
#[test]
fn a_switch_that_widens_is_told_with_its_seq() {
    let forge = Forge::family();
    let end = forge.len("B");
    forge.events("B", |events| {
        events.push(mode("workspace-write", "user"));
        events.push(mode("read-only", "user"));
    });
    forge.check(&[]);
    forge.events("B", |events| {
        events.push(mode("workspace-write", "user"));
        events.push(mode("danger-full-access", "preset"));
    });
    forge.check(&[("B", "widening-switch", Some(end + 2)), ("B", "widening-switch", Some(end + 3))]);
}

// D-71: what an unswitched session follows is in no log
#[test]
fn a_switch_of_an_unswitched_child_may_widen() {
    let forge = Forge::unswitched();
    let (intact, end) = (forge.log("B"), forge.len("B"));
    forge.events("B", |events| events.push(mode("read-only", "user")));
    forge.check(&[]);
    forge.write("B", intact);
    forge.events("B", |events| events.push(mode("workspace-write", "user")));
    forge.check(&[("B", "widening-switch", Some(end))]);
}

// D-71
#[test]
fn a_child_that_may_ask_again() {
    let forge = Forge::family();
    let end = forge.len("B");
    forge.events("B", |events| events.push(policy("never", "user")));
    forge.check(&[]);
    forge.events("B", |events| events.push(policy("ask", "user")));
    forge.check(&[("B", "widening-approval", Some(end + 1))]);
}

// D-71
#[test]
fn a_delegation_writes_nothing_later() {
    let forge = Forge::family();
    let (intact, end) = (forge.log("B"), forge.len("B"));
    forge.events("B", |events| events.push(mode("workspace-write", "delegation")));
    forge.check(&[("B", "delegation-event-late", Some(end))]);
    forge.write("B", intact);
    forge.events("B", |events| events.push(policy("ask", "delegation")));
    forge.check(&[("B", "delegation-event-late", Some(end))]);
}

// D-71
#[test]
fn a_top_level_session_has_nothing_that_a_delegation_writes() {
    let forge = Forge::family();
    let (intact, end) = (forge.log("TOP"), forge.len("TOP"));
    let descriptor = json!({ "version": 1, "mode": "one-shot", "provider": "spawn" });
    let forged = [
        (mode("read-only", "delegation"), "delegation-event-in-top-level"),
        (policy("never", "delegation"), "delegation-event-in-top-level"),
        (event("subagent/descriptor", descriptor), "descriptor-unfounded"),
        (event("session/end-seed", json!({})), "end-seed-unfounded"),
        (mode("read-only", "initial"), "initial-override-late"),
    ];
    for (forged, code) in forged {
        forge.write("TOP", &intact);
        forge.events("TOP", |events| events.push(forged));
        forge.check(&[("TOP", code, Some(end))]);
    }
}

// D-51, D-71
#[test]
fn an_operator_only_narrows() {
    let forge = Forge::family();
    for name in ["TOP", "B"] {
        let (intact, end) = (forge.log(name), forge.len(name));
        forge.events(name, |events| events.push(mode("read-only", "ancestor")));
        forge.check(&[]);
        for wider in ["read-only", "danger-full-access"] {
            forge.events(name, |events| events.push(mode(wider, "ancestor")));
            forge.check(&[(name, "ancestor-not-narrower", Some(end + 1))]);
            forge.events(name, |events| drop(events.pop()));
        }
        forge.write(name, intact);
    }
    let unswitched = Forge::unswitched();
    let end = unswitched.len("B");
    unswitched.events("B", |events| events.push(mode("read-only", "ancestor")));
    unswitched.check(&[]);
    for wider in ["workspace-write", "danger-full-access"] {
        unswitched.events("B", |events| events[end as usize] = mode(wider, "ancestor"));
        unswitched.check(&[("B", "ancestor-not-narrower", Some(end))]);
    }
}
