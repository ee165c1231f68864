//! The suite passes providers that do what they owe, and finds what is wrong with each that does not.

mod broken;
mod elsewhere;
mod house;

use super::{Fixture, check, contract};
use broken::Bug;
use house::House;

#[test]
fn a_provider_of_agents_keeps_the_contract() {
    contract(|| House(None));
}

#[test]
fn a_provider_of_threads_keeps_the_contract() {
    contract(|| elsewhere::House::of(None));
}

/// Each of these checks finds the bug, and says why.
#[track_caller]
fn found_in<F: Fixture>(make: impl Fn() -> F, found: &[(&str, &str)]) {
    for (name, why) in found {
        match check(name, make()) {
            Err(fault) => assert!(fault.check == *name && fault.why.contains(why), "{fault}"),
            Ok(()) => panic!("`{name}` found nothing"),
        }
    }
}

#[track_caller]
fn found(bug: Bug, found: &[(&str, &str)]) {
    found_in(|| House(Some(bug)), found);
}

#[track_caller]
fn found_elsewhere(bug: elsewhere::Bug, found: &[(&str, &str)]) {
    found_in(|| elsewhere::House::of(Some(bug)), found);
}

// D-23, D-25
#[test]
fn wrong_ends_are_found() {
    found(
        Bug::NeverSettles,
        &[
            ("every_end_is_a_result", "the child's end did not come within"),
            ("a_result_settles_when_its_scope_closes", "a result whose scope closes did not come within"),
        ],
    );
    found(Bug::NeverSettlesWhenClosed, &[("a_result_settles_when_its_scope_closes", "did not come within")]);
    found(Bug::FailuresComplete, &[("every_end_is_a_result", "the end of Fail")]);
    found(Bug::FailsWithoutAWord, &[("every_end_is_a_result", "one line says why it failed")]);
    found(
        Bug::CancelsComplete,
        &[
            ("a_cancelled_child_is_aborted", "a cancel that comes before the end"),
            ("a_child_stopped_at_any_await_is_aborted_or_done", "it was said to be done"),
        ],
    );
}

// D-24, D-31
#[test]
fn another_ones_words_are_found() {
    found(Bug::SpeaksForTheParent, &[("the_output_is_the_childs_own", "has no output")]);
    found(Bug::RepeatsTheFirst, &[("siblings_do_not_meet", "each has its own task")]);
}

// D-25
#[test]
fn what_does_not_go_is_found() {
    let disposal = "the disposals did not come within";
    found(Bug::IgnoresCancellation, &[("a_disposal_returns_when_all_is_quiet", disposal)]);
    found(Bug::LeaksATask, &[("a_disposal_returns_when_all_is_quiet", "there is still 1 running task(s)")]);
    found(
        Bug::LeaksTheChild,
        &[
            ("a_disposal_returns_when_all_is_quiet", "when a disposal returns"),
            ("a_dropped_run_goes", "there is still the agent"),
            ("children_go_with_their_parent", "there is still the agent"),
        ],
    );
    found(Bug::LeaksASection, &[("a_dropped_run_goes", "there is still the section `left-")]);
    found_elsewhere(
        elsewhere::Bug::LeaksAThread,
        &[
            ("a_disposal_returns_when_all_is_quiet", "the thread 0"),
            ("a_start_given_up_anywhere_leaves_nothing", "there is still the thread 0"),
        ],
    );
}

// D-11, D-22
#[test]
fn starts_that_leave_something_are_found() {
    let dropped = [
        ("a_start_given_up_anywhere_leaves_nothing", "there is still the thread 0"),
        ("a_start_dropped_at_any_await_leaves_nothing", "at its await 0, there is still the thread 0"),
    ];
    found_elsewhere(elsewhere::Bug::LeaksWhenDropped, &dropped);
    found(Bug::LeaksTheChild, &[("a_start_dropped_at_any_await_leaves_nothing", "there is still the agent")]);
    let crowd = ("nothing_is_left_whatever_the_interleaving", "after many starts at once, there is still the agent");
    found(Bug::LeaksTheChild, &[crowd]);
    let failed = ("a_start_that_fails_leaves_nothing", "a child that cannot be set up, or kept, was started");
    found(Bug::SwallowsFailures, &[failed]);
    found(Bug::FailsTooLate, &[("a_child_is_there_until_its_run_is_disposed", "the child can be started")]);
}

// D-21, D-27
#[test]
fn options_that_are_ignored_are_found() {
    found(
        Bug::IgnoresOptions,
        &[
            ("an_output_schema_holds", "it was handed in"),
            ("a_tool_filter_holds", "of a tool that is admitted: false"),
            ("a_persona_holds", "the persona is for the child"),
        ],
    );
    found_elsewhere(elsewhere::Bug::IgnoresASchema, &[("an_output_schema_holds", "it was handed in")]);
    found(Bug::IgnoresTheCap, &[("what_is_not_asked_for_is_the_parents", "the child's model, and its sampling")]);
}

// D-03, D-12, D-20
#[test]
fn what_is_not_said_truly_or_in_time_is_found() {
    for fork in [false, true] {
        let lie = ("it_says_truly_whether_its_children_know_the_conversation", "`inherits_parent_context` says");
        found(Bug::LiesAboutContext { fork }, &[lie]);
    }
    for late in [Bug::CapturesLate, Bug::DelegatesLate] {
        found(late, &[("what_is_handed_down_is_taken_at_the_call", "what holds for the parent at the call")]);
    }
}

// D-05, D-06, D-12
#[test]
fn a_child_that_was_not_composed_is_found() {
    let missing = [(false, "the parent's log is durable through the capture"), (true, "then its descriptor")];
    for (flushes, why) in missing {
        found(Bug::ComposesByHand { flushes }, &[("a_child_begins_with_what_it_was_handed", why)]);
    }
}

// D-20
#[test]
fn a_child_that_goes_with_its_providers_name_is_found() {
    let ended = "a child ended since its provider was removed";
    found(Bug::GoesWithItsName, &[("a_removed_provider_keeps_what_it_accepted", ended)]);
}

// D-22
#[test]
fn children_that_are_not_there_are_found() {
    let check = "a_child_is_there_until_its_run_is_disposed";
    found(Bug::StartsTooEarly, &[(check, "a child is published when its start resolves")]);
    found(Bug::HidesItsChild, &[(check, "a run names its child's session")]);
    found(Bug::GoesTooEarly, &[(check, "a finished child stays until its run is disposed")]);
    found(Bug::TellsTwice, &[("a_run_is_told_from_start_to_end_once", "2 starts are told")]);
}

#[test]
fn all_faults_are_told_at_once() {
    let told = std::panic::catch_unwind(|| contract(|| House(Some(Bug::FailuresComplete)))).expect_err("it is broken");
    let told = super::message(&*told);
    assert!(told.starts_with("2 of the provider's promises are broken:\nan_output_schema_holds: "), "{told}");
    assert!(told.contains("\nevery_end_is_a_result: "), "{told}");
}

#[test]
#[should_panic(expected = "the contract has no check named `none`")]
fn a_check_that_there_is_not_is_refused() {
    let _ = check("none", House(None));
}
