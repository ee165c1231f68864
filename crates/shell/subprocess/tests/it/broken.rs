//! Helpers that do not do what a helper does.

use std::env;
use std::process::Command;
use std::time::Duration;

use context::Scope;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use subprocess::helper::{GUARD, MAX_PLAN};
use subprocess::{How, Limits, Process, Spawn, run};
use tokio_util::sync::CancellationToken;

use crate::support::{DEADLINE, Mark, finish, helper, limits, marked, ready, sh, within};

/// A shell in the place of a helper: 3 is its lifeline, 4 the way back.
fn helper_that(script: &str) -> Spawn {
    Spawn { program: "/bin/sh".into(), args: vec!["-c".into(), script.into()], ..sh("") }
}

async fn check(script: &str, expected: How) {
    assert_eq!(finish(helper_that(script)).await.how, expected, "{script}");
}

fn died(status: &str) -> How {
    How::HelperDied { status: status.to_owned() }
}

#[tokio::test]
async fn a_helper_that_says_nothing_has_died() {
    check("exit 3", died("exit status: 3, without a word about the command")).await;
    check("kill -9 $$", died("signal: 9 (SIGKILL), without a word about the command")).await;
    check(r#"echo '{"report":"started"}' >&4"#, died("exit status: 0, without a word about the command")).await;
    check(r#"printf '{"report":"ended","code":0}' >&4"#, died("exit status: 0, without a word about the command"))
        .await;
}

#[tokio::test]
async fn a_helper_that_says_what_none_says_is_ended() {
    let none = |line: &str| died(&format!("ended for a report that is none: `{line}`"));
    check("echo hello >&4; cat <&3", none("hello")).await;
    check("echo '{\"report\":\"started\"}' >&4; printf '{}\\0\\n' >&4; cat <&3", none("{}\\0")).await;
    check(r#"echo '{"report":"ended","code":0}' >&4; echo >&4; cat <&3"#, none("")).await;
    check("yes | tr -d '\\n' >&4; cat <&3", none(&"y".repeat(200))).await;
}

#[tokio::test]
async fn the_first_end_counts_and_notes_are_kept_within_bounds() {
    let script = r#"i=0; while [ $i -lt 100 ]; do echo '{"report":"note","text":"n"}' >&4; i=$((i + 1)); done
        echo '{"report":"ended","code":1}' >&4; echo '{"report":"ended","code":0}' >&4"#;
    let scope = Scope::root("test");
    let mut process = Process::spawn(&scope, helper_that(script)).unwrap();
    let ended = within(process.wait()).await;
    assert_eq!((ended.how, ended.notes), (How::Exited(1), vec!["n".to_owned(); 64]));
    within(scope.close()).await.unwrap();
}

// D-64
#[tokio::test]
async fn what_could_not_be_ended_is_a_failure_of_its_owner() {
    let scope = Scope::root("test");
    let script = r#"echo '{"report":"left","processes":[12,34]}' >&4; echo '{"report":"ended","code":0}' >&4"#;
    let mut process = Process::spawn(&scope, helper_that(script)).unwrap();
    let complaint = "2 processes of a command could not be ended: 12, 34";
    let ended = within(process.wait()).await;
    assert_eq!((ended.how, ended.notes), (How::Exited(0), vec![complaint.to_owned()]));
    let failed = within(scope.close()).await.unwrap_err().to_string();
    assert!(failed.ends_with(complaint), "{failed}");
}

#[tokio::test]
async fn a_stranger_that_holds_the_pipes_holds_up_nothing() {
    let script = r#"setsid sleep 1000 & echo $!; echo '{"report":"ended","code":0}' >&4"#;
    let finished = finish(helper_that(script)).await;
    let stranger: i32 = finished.output.text.trim().parse().unwrap();
    kill_process(Pid::from_raw(stranger).unwrap(), Signal::KILL).expect("it holds them still");
    assert_eq!(finished.how, How::Exited(0));
}

#[tokio::test]
async fn a_stranger_that_goes_on_writing_is_not_read_for_ever() {
    let scope = Scope::root("test");
    let script = r#"setsid sleep 1000 & echo $!; echo '{"report":"ended","code":0}' >&4"#;
    let mut process = Process::spawn(&scope, helper_that(script)).unwrap();
    let said = String::from_utf8(within(process.output()).await.unwrap()).unwrap();
    let stranger = Pid::from_raw(said.trim().parse().unwrap()).unwrap();
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let pipe = open(format!("/proc/{stranger}/fd/1"), flags, Mode::empty()).unwrap();
    let to_its_end = async {
        loop {
            // There is always something to read, however late the reader comes.
            while rustix::io::write(&pipe, &[b'y'; 4096]).is_ok() {}
            if process.output().await.is_none() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within(to_its_end).await;
    kill_process(stranger, Signal::KILL).expect("it holds the pipe still");
    assert_eq!(within(process.wait()).await.how, How::Exited(0));
    within(scope.close()).await.unwrap();
}

#[tokio::test]
async fn what_had_ended_by_itself_was_not_stopped() {
    let script = r#"echo '{"report":"ended","code":0}' >&4; echo ended; exec cat <&3"#;
    let scope = Scope::root("test");
    for times_out in [true, false] {
        let cancelled = CancellationToken::new();
        let timeout = if times_out { Duration::from_millis(300) } else { DEADLINE };
        let process = Process::spawn(&scope, helper_that(script)).unwrap();
        let each = |_: &str| {
            if !times_out {
                cancelled.cancel()
            }
        };
        let finished = within(run(process, &Limits { timeout, ..limits() }, &cancelled, each)).await;
        assert_eq!((finished.how, finished.timed_out, finished.cancelled), (How::Exited(0), false, false));
    }
    within(scope.close()).await.unwrap();
}

// D-64
#[tokio::test]
async fn a_helper_that_will_not_end_is_killed() {
    let (scope, mark) = (Scope::root("test"), Mark::new());
    let mut process = Process::spawn(&scope, marked(helper_that("echo ready; exec sleep 1000"), &mark)).unwrap();
    ready(&mut process).await;
    tokio::time::pause();
    process.kill();
    // More than the patience with it.
    for _ in 0..300 {
        tokio::time::advance(Duration::from_millis(100)).await;
    }
    tokio::time::resume();
    assert_eq!(within(process.wait()).await.how, How::Killed);
    mark.is_gone();
    let failed = within(scope.close()).await.unwrap_err().to_string();
    assert!(failed.ends_with("did not end within 20 s and was killed"), "{failed}");
}

// D-64
#[tokio::test]
async fn a_killed_helper_takes_the_command_with_it() {
    let (scope, mark) = (Scope::root("test"), Mark::new());
    let mut process = Process::spawn(&scope, marked(sh("echo ready; exec sleep 1000"), &mark)).unwrap();
    ready(&mut process).await;
    kill_process(Pid::from_raw(process.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
    let status = "signal: 9 (SIGKILL), without a word about the command";
    assert_eq!(within(process.wait()).await.how, died(status));
    mark.is_gone_within(crate::support::SECOND);
    within(scope.close()).await.unwrap();
}

/// A plan that the harness would not have sent.
#[test]
fn a_helper_reads_no_more_than_a_plan() {
    let shell =
        format!("printf '\\377\\377\\377\\377' | {} {GUARD} 3<&0 4>&1 | cat", env::current_exe().unwrap().display());
    let output = Command::new("sh").arg("-c").arg(shell).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let why = format!("a plan has at most {MAX_PLAN} bytes, and this one has {}", u32::MAX);
    assert_eq!(said, format!("{{\"report\":\"failed\",\"stage\":\"helper\",\"why\":\"{why}\"}}\n"));
}

#[test]
fn a_helper_that_nobody_started_says_so() {
    let output = Command::new(helper()).arg(GUARD).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("descriptor 3 is no pipe to the harness"), "{stderr}");
}
