use std::time::Instant;

use rustix::process::Signal;

use super::terminal::Terminal;
use super::world::World;

const ASK: &str = "write ../x out with danger-full-access because 'the task says so'; say done";

/// Runs a task that asks, with something typed before the question, and hands over once it is asked.
fn asking(world: &World, more: &[&str], typed: &str) -> Terminal {
    let command = world.command(&[&["run", "--sandbox", "read-only"], more, &[ASK]].concat());
    let mut terminal = Terminal::start(command, typed);
    assert!(terminal.asked(), "it ended without a question");
    terminal
}

/// What was decided, and that the disk agrees.
#[track_caller]
fn check(world: &World, outcome: &str, written: bool) {
    let log = world.logs().into_values().next().unwrap();
    assert_eq!(log.all("approval/asked").len(), 1);
    assert_eq!(log.all("approval/decided")[0]["outcome"], outcome, "{}", log.text());
    assert_eq!(world.path("area/x").exists(), written);
}

#[test]
fn what_is_answered_is_done() {
    for (answer, outcome) in [
        ("y\n", "allowed-once"),
        (" YES \n", "allowed-once"),
        ("n\n", "rejected"),
        ("\n", "rejected"),
        ("yy\n", "rejected"),
    ] {
        let world = World::new();
        let mut terminal = asking(&world, &[], "");
        terminal.type_in(answer);
        let sat = terminal.finish();
        assert_eq!((sat.status, &*sat.stdout), (0, "done\n"));
        check(&world, outcome, outcome == "allowed-once");
    }
}

#[test]
fn what_was_typed_before_is_no_answer() {
    let world = World::new();
    let mut terminal = asking(&world, &[], "y\ny\ny\n");
    terminal.type_in("n\n");
    assert_eq!(terminal.finish().questions.len(), 1);
    check(&world, "rejected", false);
}

#[test]
fn the_end_of_the_input_is_nobodys_answer() {
    let world = World::new();
    let mut terminal = asking(&world, &[], "");
    terminal.type_in("\u{4}");
    assert_eq!(terminal.finish().status, 0);
    check(&world, "unavailable", false);
}

#[test]
fn a_terminal_that_goes_away_is_nobodys_answer() {
    let world = World::new();
    let status = asking(&world, &[], "").hang_up();
    assert_eq!(status, 0);
    check(&world, "unavailable", false);
}

#[test]
fn a_cancel_settles_the_question_at_once() {
    let world = World::new();
    let terminal = asking(&world, &[], "");
    let begun = Instant::now();
    terminal.signal(Signal::INT);
    assert_eq!(terminal.finish().status, 130);
    // Anything but a wait for an answer, even where tests crowd each other.
    assert!(begun.elapsed().as_secs() < 30);
    check(&world, "cancelled", false);
}

#[test]
fn the_time_limit_settles_the_question() {
    let world = World::new();
    assert_eq!(asking(&world, &["--timeout", "1"], "").finish().status, 3);
    check(&world, "cancelled", false);
}

#[test]
fn nobody_is_asked_who_is_not_there() {
    // Standard input is no terminal, or there is to be no question.
    let world = World::new();
    assert_eq!(world.tether(&["run", "--sandbox", "read-only", ASK]).ended(0).stdout, "done\n");
    check(&world, "unavailable", false);
    for args in [["--approval", "never"], ["--json", "--verbose"]] {
        let world = World::new();
        let command = world.command(&[&["run", "--sandbox", "read-only"], &args[..], &[ASK]].concat());
        let sat = super::terminal::say_yes(command);
        assert_eq!((sat.status, sat.questions.len()), (0, 0), "{args:?}");
        check(&world, if args[0] == "--json" { "unavailable" } else { "rejected" }, false);
    }
}
