//! The stamps of a child, one forgery a test.

use serde_json::json;

use super::forge::{Forge, event, mode, policy};

// D-71
#[tokio::test]
async fn what_the_program_leaves_is_in_order() {
    Forge::family().check(&[]);
    Forge::unswitched().check(&[]);
    Forge::forked().check(&[]);
    Forge::forks().await.check(&[]);
}

// D-71
#[test]
fn a_stamp_is_missing() {
    let forge = Forge::family();
    forge.events("B", |events| drop(events.remove(0)));
    forge.check(&[("B", "stamp-missing", None)]);
}

// D-71
#[test]
fn a_stamp_of_a_parent_without_an_override() {
    let forge = Forge::unswitched();
    forge.events("B", |events| events.insert(0, mode("read-only", "delegation")));
    forge.check(&[("B", "stamp-unfounded", Some(0))]);
}

// D-71
#[test]
fn a_stamp_is_wider_or_narrower_than_what_the_parent_had() {
    let forge = Forge::family();
    forge.events("B", |events| events[0] = mode("danger-full-access", "delegation"));
    forge.check(&[("B", "stamp-wider", Some(0))]);
    forge.events("B", |events| events[0] = mode("read-only", "delegation"));
    forge.check(&[("B", "stamp-narrower", Some(0))]);
}

// D-07, D-71: what the parent switches to behind the capture is not what it handed down
#[test]
fn a_stamp_is_compared_as_of_the_capture() {
    let forge = Forge::family();
    let end = forge.len("TOP");
    forge.events("TOP", |events| events.push(mode("read-only", "user")));
    forge.check(&[]);
    forge.header("A", |header| header["parentSeq"] = json!(end + 1));
    forge.check(&[("A", "capture-elsewhere", None), ("A", "stamp-wider", Some(0))]);
}

// D-71
#[test]
fn a_stamp_behind_the_creation() {
    let forge = Forge::family();
    let intact = forge.log("B");
    let turn = forge.first("B", "turn/start");
    forge.events("B", |events| {
        let stamp = events.remove(0);
        events.insert(turn, stamp);
    });
    forge.check(&[("B", "stamp-late", Some(turn as u64))]);

    forge.write("B", intact);
    forge.events("B", |events| events.swap(0, 1));
    forge.events("B", |events| events.swap(1, 2));
    forge.check(&[("B", "stamp-late", Some(2))]);
}

// D-71
#[test]
fn the_stamps_are_in_another_order() {
    let forge = Forge::family();
    forge.events("B", |events| events.swap(0, 1));
    forge.check(&[("B", "stamps-out-of-order", Some(1))]);
}

// D-71
#[test]
fn a_policy_event_before_between_or_behind_the_stamps() {
    let forge = Forge::family();
    let intact = forge.log("B");
    for at in 0..3 {
        for forged in [mode("danger-full-access", "user"), policy("ask", "user"), mode("read-only", "ancestor")] {
            forge.write("B", &intact);
            forge.events("B", |events| events.insert(at, forged));
            forge.check(&[("B", "policy-event-in-creation", Some(at as u64))]);
        }
    }
}

// D-71
#[test]
fn two_stamps_or_two_pins() {
    let forge = Forge::family();
    let intact = forge.log("B");
    forge.events("B", |events| events.insert(1, mode("danger-full-access", "delegation")));
    forge.check(&[("B", "policy-event-in-creation", Some(1))]);
    forge.write("B", intact);
    forge.events("B", |events| events.insert(2, policy("ask", "delegation")));
    forge.check(&[("B", "policy-event-in-creation", Some(2))]);
}

// D-05, D-71
#[test]
fn something_else_before_the_stamps() {
    let forge = Forge::family();
    let title = event("session/title", json!({ "title": "t", "source": "user" }));
    forge.events("B", |events| events.insert(0, title));
    forge.check(&[("B", "event-before-stamps", Some(0))]);
}

// D-02, D-71
#[test]
fn an_initial_override_on_a_child() {
    let forge = Forge::family();
    let intact = forge.log("B");
    for source in ["initial", "preset"] {
        forge.write("B", &intact);
        forge.events("B", |events| events.insert(0, mode("read-only", source)));
        forge.check(&[("B", "initial-override-on-child", Some(0))]);
    }
    forge.write("B", &intact);
    let end = forge.len("B");
    forge.events("B", |events| events.push(mode("read-only", "initial")));
    forge.check(&[("B", "initial-override-on-child", Some(end))]);
}

// D-04, D-71
#[test]
fn a_pin_is_missing() {
    let forge = Forge::family();
    forge.events("B", |events| drop(events.remove(1)));
    forge.check(&[("B", "pin-missing", None)]);
}

// D-71
#[test]
fn a_pin_that_does_not_pin() {
    let forge = Forge::family();
    forge.events("B", |events| events[1] = policy("ask", "delegation"));
    forge.check(&[("B", "pin-not-never", Some(1))]);
}

// D-71
#[test]
fn a_pin_behind_the_creation() {
    let forge = Forge::family();
    let turn = forge.first("B", "turn/start");
    forge.events("B", |events| {
        let pin = events.remove(1);
        events.insert(turn, pin);
    });
    forge.check(&[("B", "pin-late", Some(turn as u64))]);
}
