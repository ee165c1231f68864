//! How a command ended, and why one did not start.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use context::Scope;
use subprocess::helper::MAX_PLAN;
use subprocess::{Environment, How, Process, Spawn, SpawnError, guard};

use crate::support::{Mark, argv, finish, helper, marked, sh, within};

#[track_caller]
fn check(how: &How, expected: &How) {
    assert_eq!(how, expected);
}

#[tokio::test]
async fn a_command_says_how_it_ended() {
    for code in [0, 1, 7, 126, 127, 255] {
        check(&finish(sh(&format!("exit {code}"))).await.how, &How::Exited(code));
    }
    for signal in [1, 6, 9, 11, 15] {
        check(&finish(sh(&format!("kill -{signal} $$; sleep 1000"))).await.how, &How::Signaled(signal));
    }
}

#[track_caller]
fn check_not_found(how: How, expected: &str, because: &str) {
    let How::NotFound { program, why } = how else { panic!("{how:?}") };
    assert_eq!(program, expected);
    assert!(why.contains(because), "{why}");
}

#[tokio::test]
async fn a_program_that_cannot_be_executed_is_named() {
    check_not_found(finish(argv(&["no-such-program", "x"])).await.how, "no-such-program", "No such file");
    check_not_found(finish(argv(&["/etc"])).await.how, "/etc", "denied");
    check_not_found(finish(argv(&["/etc/passwd"])).await.how, "/etc/passwd", "denied");
    check_not_found(finish(argv(&[""])).await.how, "", "No such file");
}

#[track_caller]
fn check_set_up(how: How, expected: &str, because: &str) {
    let How::SetUpFailed { stage, why } = how else { panic!("{how:?}") };
    assert_eq!(stage, expected);
    assert!(why.contains(because), "{why}");
}

#[tokio::test]
async fn a_set_up_that_fails_is_no_end_of_the_command() {
    check_set_up(finish(argv(&[])).await.how, "command", "argument list is empty");
    check_set_up(finish(argv(&["a\0b"])).await.how, "command", "its program holds a NUL byte");
    check_set_up(finish(argv(&["echo", "a", "b\0"])).await.how, "command", "its argument 2 holds a NUL byte");
    check_set_up(finish(Spawn { plan: b"\x09\0\0\0x".into(), ..sh("") }).await.how, "plan", "not what a guard reads");
    let (program, args, plan) = guard(&helper(), &["true".into()], Path::new("/nowhere"));
    check_set_up(finish(Spawn { program, args, plan, ..sh("") }).await.how, "cwd", "/nowhere: No such file");
}

#[track_caller]
fn check_refused(scope: &Scope, spawn: Spawn, expected: &str) {
    let refused = Process::spawn(scope, spawn).unwrap_err().to_string();
    assert!(refused.starts_with(expected), "{refused}");
}

#[tokio::test]
async fn a_start_that_cannot_work_is_refused() {
    let scope = Scope::root("test");
    let gone = tempfile::tempdir().unwrap().keep();
    fs::remove_dir(&gone).unwrap();
    check_refused(&scope, Spawn { program: "".into(), ..sh("") }, "no program to start");
    check_refused(&scope, Spawn { program: "/nowhere".into(), ..sh("") }, "cannot start the helper /nowhere: No such");
    check_refused(&scope, Spawn { program: "/etc".into(), ..sh("") }, "cannot start the helper /etc: Permission");
    check_refused(&scope, Spawn { program: "a\0".into(), ..sh("") }, "the path of the helper holds a NUL byte");
    check_refused(&scope, Spawn { args: vec!["a".into(), "\0".into()], ..sh("") }, "argument 2 holds a NUL byte");
    check_refused(&scope, Spawn { cwd: "\0".into(), ..sh("") }, "the directory to run in holds a NUL byte");
    check_refused(&scope, Spawn { cwd: gone.clone(), ..sh("") }, &format!("cannot run in {}: No such", gone.display()));
    check_refused(&scope, Spawn { cwd: "/etc/passwd".into(), ..sh("") }, "cannot run in /etc/passwd: not a directory");
    check_refused(&scope, Spawn { plan: vec![0; MAX_PLAN + 1], ..sh("") }, "the plan of the command has 4194305 bytes");
    let with = |name: &str, value: &str| Spawn { env: Environment::inherited().with(name, value), ..sh("") };
    check_refused(&scope, with("A=B", "x"), "`A=B` names no environment variable");
    check_refused(&scope, with("", "x"), "`` names no environment variable");
    check_refused(&scope, with("A\0", "x"), "the name of the variable `A\\0` holds a NUL byte");
    check_refused(&scope, with("A", "\0"), "the variable `A` holds a NUL byte");
    within(scope.close()).await.unwrap();
}

// D-64
#[tokio::test]
async fn a_closing_scope_starts_nothing() {
    let (scope, mark) = (Scope::root("test"), Mark::new());
    let ctx = scope.child("child").unwrap().leave();
    within(scope.close()).await.unwrap();
    let refused = Process::spawn(&ctx, marked(sh("sleep 1000"), &mark));
    assert!(matches!(refused, Err(SpawnError::Closing(_))), "{refused:?}");
    mark.is_gone();
}

#[tokio::test]
async fn a_long_command_line_arrives() {
    let many: Vec<String> = (0..10_000).map(|n| format!("argument {n}")).collect();
    let mut command = vec!["sh", "-c", "shift 9998; echo $# \"$2\"", "sh"];
    command.extend(many.iter().map(String::as_str));
    assert_eq!(finish(argv(&command)).await.output.text, "2 argument 9999\n");
}

#[tokio::test]
async fn arguments_are_bytes() {
    let command = ["printf".into(), "%s".into(), OsString::from_vec(b"\xff\n\"".into())];
    let (program, args, plan) = guard(&helper(), &command, Path::new("/"));
    let finished = finish(Spawn { program, args, plan, ..sh("") }).await;
    assert_eq!((&*finished.output.text, finished.output.bytes), ("\u{fffd}\n\"", 3));
}
