//! What a child's header says, against its parent's log.

use std::fs;

use serde_json::{Value, json};

use super::forge::{Forge, policy};

// D-26, D-71
#[test]
fn the_depth_is_the_parents_plus_one() {
    let forge = Forge::family();
    for depth in [1_u32, 3, 4_000_000_000, u32::MAX] {
        forge.header("B", |header| header["delegationDepth"] = json!(depth));
        forge.check(&[("B", "depth-wrong", None)]);
    }
}

// D-26, D-71
#[test]
fn a_top_level_session_has_no_depth() {
    let forge = Forge::family();
    forge.header("TOP", |header| header["delegationDepth"] = json!(1));
    forge.check(&[("TOP", "log-unreadable", None), ("A", "parent-unreadable", None)]);
}

// D-27, D-71
#[test]
fn the_working_directory_is_the_parents() {
    let forge = Forge::family();
    forge.header("B", |header| header["cwd"] = json!("/"));
    forge.check(&[("B", "cwd-differs", None)]);
    // Whatever it says, a line is a line.
    forge.header("B", |header| header["cwd"] = json!(format!("/\u{1b}[2J\n{}", "x".repeat(100_000))));
    forge.check(&[("B", "cwd-differs", None)]);
    let told = forge.audit(&[]).ended(1).stdout;
    assert!(!told.contains('\u{1b}') && told.len() < 4_000, "{told}");
}

// D-71
#[test]
fn an_origin_that_nobody_knows() {
    let forge = Forge::family();
    forge.header("B", |header| header["origin"] = json!("teleport"));
    forge.check(&[("B", "origin-unknown", None)]);
}

// D-06, D-71
#[test]
fn a_capture_beyond_the_parents_log() {
    let forge = Forge::family();
    let end = forge.len("A");
    for beyond in [end + 1, u64::MAX] {
        forge.header("B", |header| header["parentSeq"] = json!(beyond));
        forge.check(&[("B", "parent-seq-beyond", None)]);
    }
}

// D-71
#[test]
fn a_parent_that_is_gone() {
    let forge = Forge::family();
    fs::remove_file(forge.path("TOP")).unwrap();
    forge.check(&[("A", "parent-missing", None)]);
    // What its own log tells is looked at all the same.
    forge.events("A", |events| events[1] = policy("ask", "delegation"));
    forge.check(&[("A", "parent-missing", None), ("A", "pin-not-never", Some(1))]);
}

// D-71
#[test]
fn a_parent_that_cannot_be_read() {
    let forge = Forge::family();
    let log = forge.log("A");
    forge.write("A", log.clone() + "{}\n");
    forge.check(&[("A", "log-unreadable", None), ("B", "parent-unreadable", None)]);
    // Damaged in its first events, it is below its parent still.
    let broken = log.replace("workspace-write", "anything");
    forge.write("A", broken);
    let expected = [("A", "log-unreadable", None), ("B", "parent-unreadable", None)];
    forge.check_below(&[forge.id("TOP")], &expected);
    forge.check_below(&[forge.id("A")], &expected);
}

// D-71
#[test]
fn a_lineage_that_goes_in_a_circle() {
    let forge = Forge::family();
    let deeper = forge.id("B").to_owned();
    forge.header("A", |header| header["parentSession"] = json!(deeper));
    let gone = ("TOP", "child-of-another", Some(forge.first("TOP", "tool/result") as u64));
    let expected = [gone, ("A", "lineage-circle", None), ("A", "depth-wrong", None), ("B", "lineage-circle", None)];
    forge.check(&expected);
    let below = [("B", "lineage-circle", None), ("A", "lineage-circle", None), ("A", "depth-wrong", None)];
    forge.check_below(&[forge.id("B")], &below);

    forge.header("B", |header| header["parentSession"] = json!(deeper));
    let lost = ("A", "child-of-another", Some(forge.first("A", "tool/result") as u64));
    forge.check_below(&[&deeper], &[below[0], ("B", "depth-wrong", None), below[2], lost]);
}

// D-12, D-71
#[test]
fn a_child_without_an_event_of_its_own() {
    let forge = Forge::family();
    forge.events("B", Vec::clear);
    forge.check(&[("B", "no-own-events", None)]);
}

// D-71
#[test]
fn a_lineage_as_deep_as_one_likes() {
    let mut forge = Forge::family();
    let deepest = 3_000_u64;
    let id = |n: u64| format!("01997f3c-6d1e-7c53-a5fa-{n:012x}");
    let top: Value = serde_json::from_str(forge.log("TOP").lines().next().unwrap()).unwrap();
    let events: String = forge.log("B").lines().skip(1).take(3).map(|line| format!("{line}\n")).collect();
    let mut parent = forge.id("B").to_owned();
    for n in 1..=deepest {
        let header = json!({
            "format": 1, "id": id(n), "createdAt": 1, "cwd": top["cwd"], "parentSession": parent, "parentSeq": 3,
            "origin": "subagent", "delegationDepth": n + 2,
        });
        forge.add(&id(n), &format!("{header}\n{events}"));
        parent = id(n);
    }
    let ran = forge.audit(&["--json"]).ended(0).json();
    assert_eq!(ran.last().unwrap(), &json!({ "type": "result", "sessions": deepest + 3, "violations": 0 }));
    let told = forge.audit(&[]).ended(0).stdout;
    assert!(told.ends_with("audited 3,003 sessions: no violation\n"), "{}", told.len());
    assert!(told.lines().all(|line| line.len() < 120));

    let explained = forge.tether(&["policy", "explain", "--tree", forge.id("TOP"), "--json"]).ended(0).json();
    assert_eq!(explained.len() as u64, deepest + 3);
    let last = &explained.last().unwrap()["sandbox"];
    assert_eq!((&last["mode"], &last["cut"]), (&json!("workspace-write"), &json!(true)));

    // The deepest alone is held against its parent alone.
    fs::remove_file(forge.path("TOP")).unwrap();
    forge.check_below(&[&id(deepest)], &[]);
}
