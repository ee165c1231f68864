//! Scenarios: each is data in a folder of `snapshots/`, and what comes of it is pinned beside it.

mod normal;
mod outcome;
mod play;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// Runs the scenario of a folder and compares what came of it with what is pinned there.
fn play(name: &str) {
    let folder = folder(name);
    let scenario = play::Scenario::read(&folder.join("scenario.toml"));
    let outcome = scenario.play();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(&folder);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(scenario.about());
    settings.bind(|| insta::assert_snapshot!("outcome", outcome));
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../snapshots")).canonicalize().unwrap().join(name)
}

// The stamp is in the child's log, and the denial that follows from it: without the capture or the stamp the child
// would follow the configured default and write.
// D-01 D-02 D-06 D-32
#[test]
fn a_switched_parent_delegates_a_write() {
    play("delegated-write-denied");
}

// D-08 D-26 D-70
#[test]
fn three_deep_below_a_switched_parent() {
    play("three-deep");
}

// D-27 D-31 D-32
#[test]
fn siblings_inside_and_outside_the_workspace() {
    play("siblings");
}

// D-02 D-04
#[test]
fn an_unswitched_parent_stamps_no_mode() {
    play("unswitched");
}

// D-04 D-09
#[test]
fn a_child_is_rejected_where_its_parent_is_asked() {
    play("escalation");
}

// D-10
#[test]
fn the_whole_request_of_the_default_composition() {
    play("whole-request");
}

#[test]
fn a_task_that_hangs_and_goes_on() {
    play("timeout");
}

#[test]
fn the_offline_model_says_what_it_understands() {
    play("help");
}

#[test]
fn every_folder_is_a_scenario_that_is_run() {
    let played = include_str!("scenarios.rs").lines().filter_map(|line| line.trim().strip_prefix("play(\""));
    let played: BTreeSet<String> = played.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    let entries = fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let folders: BTreeSet<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(folders, played);
}
