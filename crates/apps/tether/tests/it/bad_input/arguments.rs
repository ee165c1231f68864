use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::{check_refused, skip};
use crate::run::world::World;

#[track_caller]
fn check(args: &[&str], parts: &[&str]) {
    let world = World::new();
    check_refused(&world, world.command(args), b"", 2, parts);
}

#[test]
fn what_is_no_command() {
    check(&["frobnicate"], &["unrecognized subcommand 'frobnicate'"]);
    check(&["runn", "x"], &["unrecognized subcommand 'runn'", "'run'"]);
    check(&["sessions", "lst"], &["'lst'", "'list'"]);
    check(&["policy", "exlpain", "x"], &["'exlpain'", "'explain'"]);
    check(&["sessions", "show"], &["not provided", "<ID>"]);
    check(&["run", "one", "two"], &["unexpected argument 'two'"]);
}

#[test]
fn what_is_no_option_or_no_value_of_one() {
    check(&["run", "--jsom", "x"], &["'--jsom'", "'--json'"]);
    check(&["run", "--bogus\nline", "x"], &["'--bogus line'"]);
    check(&["run", "--sandbox"], &["'--sandbox <MODE>'"]);
    check(&["run", "--sandbox", "wide", "x"], &["`wide`", "read-only", "workspace-write", "danger-full-access"]);
    check(&["run", "--sandbox", "Read-Only", "x"], &["`Read-Only`"]);
    check(&["run", "--approval", "always", "x"], &["'always'", "ask or never"]);
    check(&["run", "--timeout", "0", "x"], &["'--timeout <SECS>'", "1..="]);
    check(&["run", "--timeout", "1e3", "x"], &["'1e3'"]);
    check(&["run", "--max-depth", "-1", "x"], &["'-1'"]);
    check(&["run", "--max-depth", "4294967296", "x"], &["4294967296"]);
    let most = "not a whole number in digits: it is at least 0 and at most 18446744073709551615";
    for value in ["abc", "-1", "1e3"] {
        check(&["run", "--max-children", value, "x"], &[&format!("'{value}' for '--max-children <N>': {most}")]);
    }
    check(&["run", "--max-depth", "4294967296", "x"], &["at most 4294967295"]);
    check(&["run", "--budget-tokens", "0", "x"], &["at least 1"]);
    check(&["run", "--json", "--json", "x"], &["'--json'", "multiple times"]);
}

#[test]
fn what_is_no_model() {
    for name in ["gpt-5", "/gpt-5", "openai/", ""] {
        check(&["run", "--model", name, "x"], &["provider/model"]);
    }
    check(&["run", "--model", "opneai/gpt-5", "x"], &["no model provider named `opneai`", "openai", "offline"]);
}

#[test]
fn what_is_no_session() {
    for id in ["x", "", "../../etc/passwd", "01997F3C-6D1E-7C53-A5FA-2C4C8FBD6A01", "01997f3c6d1e7c53a5fa2c4c8fbd6a01"]
    {
        check(&["run", "--resume", id, "say hi"], &["is not a session id"]);
        check(&["policy", "explain", id], &["is not a session id"]);
    }
    let unknown = "01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01";
    let read = [&["sessions", "show"][..], &["sessions", "tree"], &["policy", "explain"]];
    for command in read.iter().copied().chain([&["run", "say hi", "--resume"][..]]) {
        check(&[command, &[unknown]].concat(), &["no session", unknown]);
    }
}

#[test]
fn a_child_is_resumed_by_its_parent() {
    let world = World::new();
    world.tether(&["run", "spawn A { say hi }"]).ended(0);
    let logs = world.logs();
    let (child, log) = logs.iter().find(|(_, log)| !log.header()["parentSession"].is_null()).unwrap();
    let header = log.header();
    let parent = header["parentSession"].as_str().unwrap();
    for more in [&[][..], &["--sandbox", "danger-full-access"]] {
        let args = [&["run", "--resume", child, "say hi"], more].concat();
        check_refused(&world, world.command(&args), b"", 2, &["is a child of", parent]);
    }
}

#[test]
fn a_switch_is_not_written_by_a_command_that_is_refused() {
    let world = World::new();
    let id = world.tether(&["run", "say hi"]).ended(0).id();
    let args = ["run", "--resume", &id, "--sandbox", "danger-full-access", "--approval", "never"];
    for (more, part) in [(["--model", "nobody/x"], "`nobody`"), (["--cwd", ".."], "leave --cwd out")] {
        let args = [&args[..], &more, &["say hi"]].concat();
        check_refused(&world, world.command(&args), b"", 2, &[part]);
    }
    check_refused(&world, world.command(&[&args[..], &[" "]].concat()), b"", 2, &["the task is empty"]);
}

#[test]
fn what_is_no_workspace() {
    let world = World::new();
    let file = world.write("area/file", "x");
    let file = file.to_str().unwrap();
    for (dir, part) in [("/nonexistent", "/nonexistent"), (file, "not a directory"), ("", "--cwd <DIR>")] {
        check_refused(&world, world.command(&["run", "--cwd", dir, "say hi"]), b"", 2, &[part]);
    }
    std::os::unix::fs::symlink("loop", world.path("area/loop")).unwrap();
    let looping = world.path("area/loop");
    let mut command = world.command(&["run", "say hi", "--cwd"]);
    command.arg(looping);
    check_refused(&world, command, b"", 2, &["area/loop"]);
}

#[test]
fn a_workspace_that_a_log_could_not_name() {
    let world = World::new();
    let dir = world.root().join(OsStr::from_bytes(b"caf\xe9"));
    if std::fs::create_dir(&dir).is_err() {
        return skip("this file system has no names that are not UTF-8");
    }
    let mut command = world.command(&["run", "say hi"]);
    command.arg("--cwd").arg(&dir);
    check_refused(&world, command, b"", 2, &["is not UTF-8"]);
}

#[test]
fn the_workspace_of_a_session_that_is_gone() {
    let world = World::new();
    let dir = world.path("area/gone");
    std::fs::create_dir(&dir).unwrap();
    let id = world.tether(&["run", "--cwd", dir.to_str().unwrap(), "say hi"]).ended(0).id();
    std::fs::remove_dir(&dir).unwrap();
    check_refused(
        &world,
        world.command(&["run", "--resume", &id, "say hi"]),
        b"",
        2,
        &["area/gone", "no directory now"],
    );
}

#[test]
fn help_and_version_are_answers() {
    let world = World::new();
    for args in [&["--help"][..], &["run", "--help"], &["sessions", "--help"], &["-V"]] {
        let ran = world.tether(args).ended(0);
        assert_eq!(ran.stderr, "", "{args:?}");
        assert!(ran.stdout.contains("tether"), "{args:?}: {}", ran.stdout);
    }
    for command in ["sessions list", "sessions show", "sessions tree", "policy explain", "policy audit", "config show"]
    {
        let args: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let ran = world.tether(&args).ended(0);
        assert!(ran.stdout.contains(&format!("Examples:\n  tether {command}")), "{}", ran.stdout);
    }
    // Without a command, the help is what is wrong.
    for args in [&[][..], &["sessions"], &["policy"]] {
        let ran = world.tether(args).ended(2);
        assert!(ran.stdout.is_empty() && ran.stderr.contains("Usage: tether"), "{args:?}: {}", ran.stderr);
    }
}
