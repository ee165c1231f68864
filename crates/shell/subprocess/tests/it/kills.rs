//! Every way to end a tree against everything a tree may do about it.

use std::time::Duration;

use context::Scope;
use subprocess::{Finished, How, Limits, Process, run};
use tokio_util::sync::CancellationToken;

use crate::support::{Mark, limits, marked, ready, sh, within};

/// Each says when it is what it is to be.
pub(crate) const TREES: [(&str, &str); 11] = [
    ("sleep", "echo ready; exec sleep 1000"),
    ("setsid", "setsid sh -c 'echo ready; exec sleep 1000' & wait"),
    ("double fork", "(setsid sh -c 'echo ready; exec sleep 1000' &); sleep 1000"),
    ("closed streams", "(setsid sh -c 'echo ready; exec sleep 1000 <&- >&- 2>&-' <&- &); exec sleep 1000 <&- >&- 2>&-"),
    ("stopped", "setsid sh -c 'echo ready; kill -STOP $$' & sleep 1000"),
    ("stopped helper", "kill -STOP $PPID; setsid sleep 1000 & echo ready; wait"),
    ("deaf", "trap '' TERM HUP INT QUIT; setsid sh -c 'echo ready; sleep 1000; sleep 1000' & sleep 1000; sleep 1000"),
    ("forking loop", "setsid sh -c 'echo ready; while :; do sleep 0.1 & done' & wait"),
    ("moving on", "f() { sleep 0.01; (setsid sh -c \"$0\" \"$0\" &) ; }; echo ready; f; sleep 1000"),
    ("in place of another", "r() { while :; do sh -c 'sleep 1000' ; done; }; r & r & echo ready; wait"),
    ("deep", "d() { if [ $1 = 0 ]; then echo ready; sleep 1000; else (d $(($1 - 1)); :); fi; }; d 40"),
];

async fn each(end: impl AsyncFn(&Scope, Process)) {
    for (what, script) in TREES {
        let (scope, mark) = (Scope::root("test"), Mark::new());
        let mut process = Process::spawn(&scope, marked(sh(script), &mark)).unwrap();
        ready(&mut process).await;
        assert!(!mark.processes().is_empty(), "{what}");
        end(&scope, process).await;
        mark.is_gone();
        within(scope.close()).await.unwrap();
    }
}

// D-64
#[tokio::test]
async fn a_kill_reaches_all_of_a_tree() {
    each(async |_, mut process| {
        process.kill();
        process.kill();
        assert_eq!(within(process.wait()).await.how, How::Killed);
    })
    .await;
}

// D-64
#[tokio::test]
async fn a_scope_that_has_closed_has_no_process_left() {
    each(async |scope, mut process| {
        within(scope.close()).await.unwrap();
        assert_eq!(within(process.wait()).await.how, How::Killed);
    })
    .await;
}

// D-64
#[tokio::test]
async fn a_dropped_process_ends() {
    each(async |scope, process| {
        drop(process);
        within(scope.close()).await.unwrap();
    })
    .await;
}

// D-64
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_dropped_process_ends_while_its_scope_goes_on() {
    let (scope, mark) = (Scope::root("test"), Mark::new());
    let mut process = Process::spawn(&scope, marked(sh("setsid sleep 1000 & echo ready; wait"), &mark)).unwrap();
    ready(&mut process).await;
    drop(process);
    mark.is_gone_within(Duration::from_secs(10));
    within(scope.close()).await.unwrap();
}

#[track_caller]
fn check(finished: &Finished, how: &How, timed_out: bool, cancelled: bool) {
    assert_eq!((&finished.how, finished.timed_out, finished.cancelled), (how, timed_out, cancelled), "{finished:?}");
}

// D-64
#[tokio::test]
async fn a_timeout_ends_the_tree() {
    each(async |_, process| {
        let limits = Limits { timeout: Duration::from_millis(1), ..limits() };
        check(&within(run(process, &limits, &CancellationToken::new(), |_| {})).await, &How::Killed, true, false);
    })
    .await;
}

// D-64
#[tokio::test]
async fn a_cancel_ends_the_tree() {
    each(async |_, process| {
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let limits = Limits { timeout: Duration::ZERO, ..limits() };
        check(&within(run(process, &limits, &cancelled, |_| {})).await, &How::Killed, false, true);
    })
    .await;
}

// D-64
#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    for (leaves, how) in [
        ("setsid sleep 1000 & exit 3", How::Exited(3)),
        ("(setsid sleep 1000 &); kill -KILL $$", How::Signaled(9)),
        ("trap '' TERM; (setsid sh -c 'while :; do sleep 0.1 & done' &); exit 0", How::Exited(0)),
        ("sh -c 'kill -STOP $$' & exit 0", How::Exited(0)),
    ] {
        let (scope, mark) = (Scope::root("test"), Mark::new());
        let process = Process::spawn(&scope, marked(sh(leaves), &mark)).unwrap();
        let finished = within(run(process, &limits(), &CancellationToken::new(), |_| {})).await;
        mark.is_gone();
        check(&finished, &how, false, false);
        within(scope.close()).await.unwrap();
    }
}

/// A command that was reaped late leaves no zombies of others meanwhile.
#[tokio::test]
async fn what_ends_before_the_command_does_is_reaped() {
    let scope = Scope::root("test");
    let script = "for i in 1 2 3 4 5; do (setsid true &); done; until [ $(cat /proc/$PPID/task/$PPID/children | wc -w) = 1 ]; do \
                  sleep 0.01; done; echo reaped";
    let process = Process::spawn(&scope, sh(script)).unwrap();
    let finished = within(run(process, &limits(), &CancellationToken::new(), |_| {})).await;
    assert_eq!((finished.how, &*finished.output.text), (How::Exited(0), "reaped\n"));
    within(scope.close()).await.unwrap();
}
