//! Each bug is found by the checks that are for it, and by no others.

use sandbox::testing::{check, contract, names};

use crate::naked::{Bug, House};

/// What can be had without holding anything.
const PASSED: [&str; 9] = [
    "it_says_what_it_holds",
    "what_cannot_be_held_is_refused",
    "a_failure_is_no_denial",
    "workspace_write_writes_below_the_root",
    "a_private_temporary_directory_is_the_sessions",
    "an_allowed_network_is_there",
    "the_environment_is_as_given",
    "arguments_and_directory_are_as_given",
    "it_ends_as_the_command_did",
];

#[track_caller]
fn found(bug: Bug, found: &[(&str, &str)]) {
    for (name, why) in found {
        match check(name, House(bug)) {
            Err(fault) => assert!(fault.check == *name && fault.why.contains(why), "{bug:?}: {fault}"),
            Ok(()) => panic!("{bug:?}: `{name}` found nothing"),
        }
    }
}

#[test]
fn what_needs_no_holding_is_passed_without() {
    for name in PASSED {
        assert_eq!(check(name, House(Bug::HoldsNothing)), Ok(()), "{name}");
    }
}

#[test]
fn a_provider_that_holds_nothing_is_found() {
    found(
        Bug::HoldsNothing,
        &[
            ("read_only_writes_nothing", "under read-only, the disk changed"),
            ("nothing_outside_changes", "what is outside changed"),
            ("protected_paths_stay", "what is protected changed"),
            ("what_is_tethers_own_is_out_of_reach", "it read what is Tether's own"),
            ("what_is_tethers_own_is_out_of_reach_inside_the_root", "it read what is Tether's own inside"),
            ("a_shared_temporary_directory_is_the_machines", "it is not written under read-only"),
            ("a_denied_network_reaches_nobody", "under read-only, it connected"),
            ("a_denied_network_is_reached_by_nobody", "this machine reached the command: somebody came"),
            ("a_denial_is_told_and_shown", "under read-only, `echo x > src/new` failed"),
            ("commands_at_once_are_held_each_by_its_own", "each writes what its own mode lets it"),
            ("others_go_on", "a process of somebody else's was ended"),
        ],
    );
}

#[test]
fn a_provider_that_lies_about_itself_is_found() {
    found(Bug::RunsAnyway, &[("what_cannot_be_held_is_refused", "without means, a command would be started")]);
    found(Bug::RefusesWithoutAWord, &[("what_cannot_be_held_is_refused", "without means, a line says why")]);
    found(Bug::HidesWhatIsOpen, &[("it_says_what_it_holds", "what stays open is said in lines")]);
    found(Bug::CriesWolf, &[("a_failure_is_no_denial", "under read-only, `false` failed by itself")]);
}

#[test]
fn what_is_not_passed_on_is_found() {
    found(Bug::AddsToTheEnvironment, &[("the_environment_is_as_given", "the given variables and no others")]);
    found(Bug::ForgetsTheDirectory, &[("arguments_and_directory_are_as_given", "the directory and the arguments")]);
    found(Bug::SplitsArguments, &[("arguments_and_directory_are_as_given", "the directory and the arguments")]);
    found(Bug::SwallowsCodes, &[("it_ends_as_the_command_did", "exit 7")]);
    found(Bug::SwallowsMissingPrograms, &[("what_could_not_start_did_not_end", "`no-such-program-anywhere`")]);
    let elsewhere = [("a_private_temporary_directory_is_the_sessions", "it said: ")];
    found(Bug::MistakesTheTemporaryDirectory, &elsewhere);
}

#[test]
fn what_is_left_is_found() {
    found(Bug::LeavesAFile, &[("nothing_is_left_of_what_ended", ".placeholder is new")]);
    let goes_on = "processes of an ended command go on";
    found(
        Bug::HoldsNothing,
        &[("nothing_is_left_of_what_ended", goes_on), ("nothing_is_left_of_what_was_stopped", goes_on)],
    );
}

#[test]
fn all_faults_are_told_at_once() {
    let told = std::panic::catch_unwind(|| contract(|| House(Bug::RefusesWithoutAWord))).expect_err("it is broken");
    let told = told.downcast_ref::<String>().expect("it is a message");
    assert!(told.starts_with("2 of the provider's promises are broken:\nit_says_what_it_holds: "), "{told}");
    assert!(told.contains("\nwhat_cannot_be_held_is_refused: "), "{told}");
}

#[test]
fn where_nothing_is_held_there_is_nothing_more_to_check() {
    for name in names().filter(|name| *name != "what_cannot_be_held_is_refused") {
        assert_eq!(check(name, House(Bug::RunsAnyway)), Ok(()), "{name}");
    }
}

#[test]
#[should_panic(expected = "the contract has no check named `none`")]
fn a_check_that_there_is_not_is_refused() {
    let _ = check("none", House(Bug::HoldsNothing));
}
