use std::fs::{File, OpenOptions};
use std::process::{Command, Stdio};

use rustix::pipe::pipe;

use super::skip;
use crate::run::world::World;

/// Somewhere that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    writer.into()
}

#[track_caller]
fn status(mut command: Command) -> i32 {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("panicked"), "{told}");
    output.status.code().unwrap_or_else(|| panic!("{}: {told}", output.status))
}

/// Everything that prints.
fn commands(world: &World) -> Vec<Vec<String>> {
    let id = world.tether(&["run", "spawn A { say hi }"]).ended(0).id();
    let commands = [
        &["run", "say hi"][..],
        &["run", "--json", "say hi"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["sessions", "list"],
        &["sessions", "list", "--json"],
        &["sessions", "show", &id],
        &["sessions", "show", "--json", &id],
        &["sessions", "tree", &id],
        &["policy", "explain", &id],
    ];
    commands.iter().map(|command| command.iter().map(|word| (*word).to_owned()).collect()).collect()
}

#[test]
fn a_closed_standard_output_is_no_failure() {
    let world = World::new();
    for args in commands(&world) {
        let mut to_a_closed_pipe = world.command(&args);
        to_a_closed_pipe.stdout(closed_pipe());
        assert_eq!(status(to_a_closed_pipe), 0, "{args:?}");
        let mut without_any = Command::new("sh");
        without_any.args(["-c", "exec \"$0\" \"$@\" >&-", env!("CARGO_BIN_EXE_tether")]).args(&args);
        world.surround(&mut without_any);
        assert_eq!(status(without_any), 0, "{args:?}");
    }
    // Nobody read it; the work was done all the same.
    let ends = world.logs().into_values().map(|log| log.last_end());
    assert!(ends.into_iter().all(|end| end == "completed"));
}

#[test]
fn a_closed_standard_error_is_no_failure() {
    let world = World::new();
    for args in commands(&world) {
        let mut command = world.command(&args);
        command.stdin(Stdio::null()).stdout(closed_pipe()).stderr(closed_pipe());
        assert_eq!(command.status().unwrap().code(), Some(0), "{args:?}");
    }
    let wrong = [(&["frobnicate"][..], 2), (&["run", "--timeout", "1", "hang"], 3), (&["run", "fail protocol"], 1)];
    for (args, expected) in wrong {
        let mut command = world.command(args);
        command.stdin(Stdio::null()).stdout(closed_pipe()).stderr(closed_pipe());
        assert_eq!(command.status().unwrap().code(), Some(expected), "{args:?}");
    }
}

#[test]
fn an_answer_that_cannot_be_printed_is_a_failure() {
    let Ok(file) = OpenOptions::new().write(true).open("/dev/full") else {
        return skip("there is no /dev/full here");
    };
    let world = World::new();
    let full = |full: &File| Stdio::from(full.try_clone().unwrap());
    for args in [&["run", "say hi"][..], &["run", "--json", "say hi"], &["sessions", "list"]] {
        let mut command = world.command(args);
        let output = command.stdin(Stdio::null()).stdout(full(&file)).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {told}");
        assert!(told.lines().last().unwrap().contains("No space left on device"), "{told}");
    }
}
