//! The children that a log names, against their own logs.

use std::fs;

use serde_json::json;

use super::forge::{Forge, mode};

fn first(forge: &Forge, name: &str, tag: &str) -> u64 {
    forge.first(name, tag) as u64
}

fn captured_at(forge: &Forge, name: &str, seq: u64) {
    forge.header(name, |header| header["parentSeq"] = json!(seq));
}

// D-71
#[test]
fn a_child_that_is_gone() {
    let forge = Forge::family();
    let (in_top, in_a) = (first(&forge, "TOP", "tool/result"), first(&forge, "A", "tool/result"));
    fs::remove_file(forge.path("B")).unwrap();
    forge.check(&[("A", "child-missing", Some(in_a))]);
    forge.check_below(&[forge.id("A")], &[("A", "child-missing", Some(in_a))]);
    fs::remove_file(forge.path("A")).unwrap();
    forge.check(&[("TOP", "child-missing", Some(in_top))]);
}

// D-71
#[test]
fn a_child_of_somebody_else() {
    let forge = Forge::family();
    let (top, named, at) =
        (forge.id("TOP").to_owned(), first(&forge, "A", "tool/result"), first(&forge, "TOP", "tool/result"));
    forge.header("B", |header| {
        header["parentSession"] = json!(top);
        header["delegationDepth"] = json!(1);
        header["parentSeq"] = json!(at);
    });
    forge.check(&[("A", "child-of-another", Some(named))]);
    forge.header("B", |header| {
        for key in ["parentSession", "delegationDepth", "parentSeq", "origin"] {
            header.as_object_mut().unwrap().remove(key);
        }
    });
    forge.events("B", |events| drop(events.drain(..3)));
    forge.check(&[("A", "child-of-another", Some(named))]);
}

// D-71
#[test]
fn a_child_whose_log_says_nothing() {
    let forge = Forge::family();
    let named = first(&forge, "A", "tool/result");
    forge.write("B", "no header\n");
    forge.check(&[("B", "log-unreadable", None)]);
    // Nobody would know that it belongs here.
    forge.check_below(&[forge.id("TOP")], &[("A", "child-unreadable", Some(named))]);
}

// D-06, D-71
#[test]
fn a_child_is_captured_in_the_call_that_started_it() {
    let forge = Forge::ran("", &["--sandbox", "read-only", "spawn A { say one } & spawn B { say two }; say done"]);
    let (call, result) = (first(&forge, "TOP", "tool/call"), first(&forge, "TOP", "tool/result"));
    // Two calls, two results: the first child may have been captured before the second call was written.
    assert_eq!(result, call + 2);
    for at in [call + 1, result] {
        captured_at(&forge, "A", at);
        forge.check(&[]);
    }
    for at in [0, call, result + 1] {
        captured_at(&forge, "A", at);
        let mut expected = vec![("A", "capture-elsewhere", None)];
        expected.extend((at == 0).then_some(("A", "stamp-unfounded", Some(0))));
        forge.check(&expected);
        forge.check_below(&[forge.id("A")], &expected);
    }
}

// D-06, D-71: its parent was switched later, and the child says that it was made behind that
#[test]
fn a_capture_that_is_moved_behind_a_switch() {
    for forge in [Forge::family(), Forge::background()] {
        let end = forge.len("TOP");
        forge.events("TOP", |events| events.push(mode("danger-full-access", "user")));
        forge.check(&[]);
        captured_at(&forge, "A", end + 1);
        forge.events("A", |events| events[0] = mode("danger-full-access", "delegation"));
        let lines = forge.audit(&["--json", forge.id("A")]).ended(1).json();
        assert_eq!(lines[0]["findings"].as_array().unwrap().len(), 1, "its stamp fits what it says: {lines:?}");
        assert_eq!(lines[0]["findings"][0]["code"], "capture-elsewhere");
    }
}

// D-06, D-71
#[test]
fn a_child_in_the_background_is_named_by_its_start() {
    let forge = Forge::background();
    forge.check(&[]);
    let (call, start) = (first(&forge, "TOP", "tool/call"), first(&forge, "TOP", "tool/result"));
    let told = first(&forge, "TOP", "subagent/report");
    let intact = forge.log("A");
    for at in [call, start + 1] {
        captured_at(&forge, "A", at);
        forge.check(&[("A", "capture-elsewhere", None)]);
    }
    fs::remove_file(forge.path("A")).unwrap();
    forge.check(&[("TOP", "child-missing", Some(start.min(told)))]);
    forge.write("A", intact);

    // It may have ended before its start was answered.
    forge.events("TOP", |events| {
        let report = events.remove(told as usize);
        events.insert(start as usize, report);
    });
    forge.check(&[]);
    captured_at(&forge, "A", call);
    forge.check(&[("A", "capture-elsewhere", None)]);
}

// D-06, D-71
#[test]
fn a_child_in_the_background_is_named_by_its_report() {
    let forge = Forge::background();
    let (start, told) = (first(&forge, "TOP", "tool/result"), first(&forge, "TOP", "subagent/report"));
    forge.events("TOP", |events| {
        let start = &mut events[start as usize];
        *start = start.replace("(session ", "(");
    });
    forge.check(&[]);
    captured_at(&forge, "A", told + 1);
    forge.check(&[("A", "capture-elsewhere", None)]);
    fs::remove_file(forge.path("A")).unwrap();
    forge.check(&[("TOP", "child-missing", Some(told))]);
}

// D-28, D-71
#[test]
fn a_forks_history_names_the_children_of_its_parent() {
    let forge = Forge::forked_behind_a_child();
    assert!(forge.log("B").contains(forge.id("A")));
    forge.check(&[]);
    let named = first(&forge, "TOP", "tool/result");
    fs::remove_file(forge.path("A")).unwrap();
    let lines = forge.audit(&["--json"]).ended(1).json();
    assert_eq!(lines[0]["findings"][0]["code"], "child-missing");
    assert_eq!(lines[0]["findings"][0]["seq"], named);
    assert_eq!(lines[1]["findings"], json!([]), "it was no child of the fork's");
}
