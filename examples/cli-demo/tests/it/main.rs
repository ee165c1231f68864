//! The program, as somebody runs it.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
use rustix::process::{Pid, Signal, kill_process};

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(60);

fn demo(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("cli-demo").unwrap();
    command.current_dir(directory).env_clear().env("TMPDIR", directory.join("tmp")).args(args).timeout(DEADLINE);
    command
}

/// A workspace, and where the program may keep things while it runs.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("tmp")).unwrap();
    place
}

#[track_caller]
fn check(args: &[&str], status: i32, stdout: &str, stderr: &str) {
    let place = place();
    let output = demo(place.path(), args).output().unwrap();
    let (said, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), &*said), (Some(status), stdout), "{args:?}: {told}");
    assert!(told.contains(stderr) && told.is_empty() == stderr.is_empty(), "{told}");
    assert_eq!(std::fs::read_dir(place.path().join("tmp")).unwrap().count(), 0, "nothing is left");
}

#[test]
fn the_answer_is_printed_and_the_status_says_how_it_went() {
    check(&["say", "well", "done"], 0, "well done\n", "");
    check(&["say half & max-tokens"], 1, "half\n", "cli-demo: the token limit cut the reply\n");
    check(&["fail unauthorized"], 1, "\n", "cli-demo: the script says: fail unauthorized");
    check(&["say no & refuse"], 1, "no\n", "cli-demo: the model declined to answer");
}

#[test]
fn what_cannot_be_used_is_told() {
    check(&[], 2, "", "required arguments were not provided");
    check(&["--sandbox", "loose", "say x"], 2, "", "invalid value 'loose'");
    check(&["--model", "nobody/any", "say x"], 2, "", "cli-demo: no model provider named `nobody`; there are: ");
    check(&["--directory", "nowhere", "say x"], 2, "", "cli-demo: cannot work in nowhere: No such file");
}

#[test]
fn files_are_written_where_it_may_and_nowhere_else() {
    let place = place();
    let (root, outside) = (place.path().join("root"), place.path().join("outside.txt"));
    std::fs::create_dir(&root).unwrap();
    let script = "spawn A { write a.txt \"from a child\" }; write ../outside.txt x; say done";
    let write = |mode| {
        demo(place.path(), &["--directory", "root", "--sandbox", mode, script]).assert().success().stdout("done\n")
    };
    write("read-only");
    assert!(!root.join("a.txt").exists() && !outside.exists());
    write("workspace-write");
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), "from a child");
    assert!(!outside.exists());
}

#[test]
fn an_interrupt_ends_it_and_leaves_nothing() {
    let place = place();
    let mut command = std::process::Command::new(cargo_bin("cli-demo"));
    command.current_dir(place.path()).env("TMPDIR", place.path().join("tmp"));
    command.args(["--sandbox", "workspace-write", "write here.txt x; spawn A { hang }"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until(&mut running, |_| place.path().join("here.txt").exists());
    kill_process(Pid::from_child(&running), Signal::INT).unwrap();
    until(&mut running, |running| running.try_wait().unwrap().is_some());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(place.path().join("tmp")).unwrap().count(), 0, "nothing is left");
}

/// Waits for what a program does.
#[track_caller]
fn until(running: &mut Child, mut is: impl FnMut(&mut Child) -> bool) {
    let begun = Instant::now();
    while !is(running) {
        if begun.elapsed() > DEADLINE {
            running.kill().unwrap();
            panic!("not before the deadline");
        }
        std::thread::yield_now();
    }
}
