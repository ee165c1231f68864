//! Scenarios: each is data in a folder of `snapshots/`, and what comes of it is pinned beside it.

mod log;
mod normal;
mod outcome;
mod play;
mod promises;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use play::Scenario;

use crate::commands::confines;
use crate::run::world::World;

/// Runs the scenario of a folder and compares what came of it with what is pinned there.
#[track_caller]
fn play(name: &str) {
    let scenario = read(name);
    let outcome = scenario.play();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder(name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(&scenario.about);
    settings.bind(|| insta::assert_snapshot!("outcome", outcome));
    scenario.check_length(&outcome);
}

/// The same where what the kernel holds is shown, which needs a kernel that does.
#[track_caller]
fn play_held(name: &str) {
    if confines(&World::new()) {
        play(name);
    }
}

fn read(name: &str) -> Scenario {
    Scenario::read(&folder(name).join("scenario.toml"))
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../snapshots")).canonicalize().unwrap().join(name)
}

// The stamp is in the child's log, and the denial that follows from it: without the capture or the stamp the child
// would follow the configured default and write.
// D-01 D-32
#[test]
fn a_switched_parent_delegates_a_write() {
    play("delegated-write-denied");
}

// D-01
#[test]
fn a_recorded_default_is_handed_down() {
    play("recorded-default");
}

// D-02 D-04
#[test]
fn an_unswitched_parent_stamps_no_mode() {
    play("unswitched");
}

// D-02
#[test]
fn an_unswitched_parent_follows_a_later_default() {
    play("default-widened-later");
}

// D-01 D-04
#[test]
fn a_preset_is_handed_down() {
    play("preset");
}

// D-07
#[test]
fn a_switch_between_turns_reaches_later_children() {
    play("switched-between-turns");
}

// D-08 D-26 D-70
#[test]
fn three_deep_below_a_switched_parent() {
    play("three-deep");
}

// D-11 D-26
#[test]
fn too_deep_a_start_is_refused() {
    play("too-deep");
}

// D-04 D-09
#[test]
fn a_child_is_rejected_where_its_parent_is_asked() {
    play("escalation");
}

// D-10
#[test]
fn a_child_is_told_once() {
    play("told-once");
}

// D-11 D-52
#[test]
fn a_start_that_fails_leaves_nothing() {
    play("failed-start");
}

// D-27 D-29
#[test]
fn a_row_that_cannot_be_is_refused() {
    play("unfit-rows");
}

// D-05 D-28
#[test]
fn a_fork_is_stamped_behind_its_history() {
    play("fork-after-switch");
}

// D-28
#[test]
fn a_fork_of_an_open_turn_knows_nothing() {
    play("fork-in-first-turn");
}

// D-06 D-70
#[test]
fn a_child_explains_itself() {
    play("explained-alone");
}

// D-20
#[test]
fn a_tool_says_what_its_child_knows() {
    play("providers");
}

// D-29
#[test]
fn a_filter_holds_for_every_generation() {
    play("filter-and-persona");
}

// D-30
#[test]
fn a_result_is_corrected_and_ends_the_turn() {
    play("structured");
}

// D-30
#[test]
fn each_child_hands_in_to_its_own_schema() {
    play("structured-siblings");
}

// D-22 D-23
#[test]
fn a_child_ends_in_each_way() {
    play("ends");
}

// D-23
#[test]
fn a_task_ends_in_each_way() {
    play("exit-statuses");
}

// D-24
#[test]
fn what_a_silent_child_puts_out() {
    play("silent-child");
}

// D-23 D-25
#[test]
fn a_task_that_hangs_and_goes_on() {
    play("timeout");
}

// D-27
#[test]
fn a_child_inherits_directory_and_model() {
    play("inherited-route");
}

// D-31 D-32
#[test]
fn siblings_inside_and_outside_the_workspace() {
    play("siblings");
}

// D-32
#[test]
fn twenty_denials_and_a_count() {
    play("many-denials");
}

#[test]
fn a_child_in_the_background() {
    play("background");
}

// D-25
#[test]
fn a_killed_child_is_gone_when_it_is_told() {
    play("killed-job");
}

#[test]
fn commands_inside_and_outside_of_their_mode() {
    play_held("commands");
}

// D-23 D-64 D-66
#[test]
fn a_child_of_another_program_crashes() {
    play_held("outside-crashes");
}

// D-23 D-25 D-64
#[test]
fn a_child_of_another_program_is_cancelled() {
    play_held("outside-cancelled");
}

// D-23 D-25 D-64
#[test]
fn a_child_of_another_program_is_killed() {
    play_held("outside-deaf");
}

// D-23 D-25 D-64
#[test]
fn a_child_of_another_program_floods() {
    play_held("outside-floods");
}

// D-23 D-64
#[test]
fn a_child_of_another_program_writes_garbage() {
    play_held("outside-garbage");
}

// D-23 D-63 D-64 D-66
#[test]
fn a_child_of_another_program_exits() {
    play_held("outside-exits");
}

// D-32 D-62
#[test]
fn a_tether_below_a_tether() {
    play_held("outside-tether");
}

// D-52
#[test]
fn a_budget_stops_the_tree() {
    play("budget");
}

// D-71
#[test]
fn a_forged_stamp_is_found() {
    play("audit");
}

#[test]
fn the_offline_model_says_what_it_understands() {
    play("help");
}

// D-10 D-20
#[test]
fn the_whole_request_of_the_default_composition() {
    play("whole-request");
}

/// The folders that this file plays, each with the ids in the comment above its test.
fn played() -> BTreeMap<String, String> {
    let (mut played, mut ids) = (BTreeMap::new(), String::new());
    for line in include_str!("scenarios.rs").lines().map(str::trim) {
        if line.is_empty() {
            ids.clear();
        } else if let Some(comment) = line.strip_prefix("// D-") {
            ids = format!("D-{comment}");
        } else if let Some((_, name)) = line.split_once("(\"").filter(|(call, _)| matches!(*call, "play" | "play_held"))
            && let Some(name) = name.strip_suffix("\");")
        {
            played.insert(name.to_owned(), ids.clone());
        }
    }
    played
}

#[test]
fn every_folder_is_a_scenario_that_is_run() {
    let entries = fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let said = |name: &String| read(name).promises.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    let folders: BTreeMap<String, String> = names.map(|name| (name.clone(), said(&name))).collect();
    assert_eq!(folders, played());
}

#[test]
fn every_promise_that_can_be_seen_has_a_scenario() {
    let scenarios = played().into_keys().map(|name| (name.clone(), read(&name).promises)).collect();
    let table = promises::table(&scenarios);
    let readme = fs::read_to_string(folder("README.md")).unwrap();
    assert!(readme.contains(&format!("\n\n{table}\n")), "snapshots/README.md should have this table:\n{table}");
}
