use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use super::check_refused;
use crate::run::world::World;

#[track_caller]
fn check(args: &[&str], stdin: &[u8], part: &str) {
    let world = World::new();
    check_refused(&world, world.command(args), stdin, 2, &[part]);
}

#[test]
fn no_task_at_all() {
    for empty in ["", " ", "\n\t\n"] {
        check(&["run", empty], b"", "the task is empty");
        check(&["run"], empty.as_bytes(), "the task is empty");
        check(&["run", "--json"], empty.as_bytes(), "the task is empty");
    }
}

#[test]
fn a_task_that_is_not_text() {
    check(&["run"], b"say \xff\xfe", "not contain valid UTF-8");
    let world = World::new();
    let mut command = world.command(&["run"]);
    command.arg(OsStr::from_bytes(b"say \xff"));
    check_refused(&world, command, b"", 2, &["invalid UTF-8"]);
}

#[test]
fn a_task_that_is_too_long() {
    let most = 16 * 1024 * 1024;
    check(&["run"], &vec![b'a'; most + 1], "more than 16777216 bytes");
}

#[test]
fn a_standard_input_that_is_closed() {
    let world = World::new();
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" run <&-", env!("CARGO_BIN_EXE_tether")]);
    world.surround(&mut command);
    check_refused(&world, command, b"", 2, &["the task is empty"]);
}

#[test]
fn a_standard_input_that_is_a_directory() {
    let world = World::new();
    let mut command = world.command(&["run"]);
    let output = command.stdin(File::open(world.base()).unwrap()).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), told.lines().count()), (Some(2), 1), "{told}");
    assert!(told.contains("the task on standard input could not be read"), "{told}");
    assert!(!world.path("home").exists());
}

#[test]
fn a_task_full_of_control_characters_is_text_like_any_other() {
    let world = World::new();
    let ran = world.fed(&["run"], "say \u{1b}[2J\u{0}\u{202e}").ended(0);
    assert!(!ran.stderr.contains(['\u{1b}', '\u{202e}']), "{:?}", ran.stderr);
    let id = ran.id();
    let shown = world.tether(&["sessions", "show", &id]).ended(0).stdout;
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}
