//! The end of a tree, whoever is killed.

use std::time::{Duration, Instant};

use context::Scope;
use rustix::process::{Pid, Signal, kill_process};
use sandbox::{CommandLine, Mode, SandboxProvider};
use subprocess::{Environment, How, Process, Spawn, Streams};

use crate::attacks::{Tier, usable};
use crate::runs::{confinement, sh};
use crate::who::Who;
use crate::yard::{Home, Yard};

const TREES: [&str; 4] = [
    "sleep 300",
    "setsid sleep 300 & echo ready; sleep 300",
    "(trap '' TERM HUP; setsid sh -c 'sleep 300 & sleep 300') & echo ready; sleep 300",
    "while :; do sleep 300 & sleep 0.01; done",
];

fn start(sandbox: &impl SandboxProvider, yard: &Yard, scope: &Scope, script: &str) -> Process {
    let argv = sh(&format!("echo ready; {script}"));
    let command = CommandLine { argv: &argv, cwd: &yard.root };
    let launch = sandbox.confine(&command, &confinement(yard, Mode::WorkspaceWrite)).unwrap();
    let env = yard.variables().into_iter().fold(Environment::inherited(), |env, (name, value)| env.with(name, value));
    let spawn = Spawn {
        program: launch.program,
        args: yard.who.step_down(launch.args),
        plan: launch.plan,
        cwd: yard.root.clone(),
        env,
        streams: Streams::Captured,
    };
    Process::spawn(scope, spawn).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long") })
}

#[track_caller]
fn is_gone(yard: &Yard, within: Duration) {
    let until = Instant::now() + within;
    while !yard.survivors().is_empty() {
        assert!(Instant::now() < until, "{:?} go on", yard.survivors());
        std::thread::yield_now();
    }
}

#[test]
fn a_tree_that_is_killed_is_gone() {
    for (tier, sandbox, _) in usable() {
        for (who, script) in Who::all().iter().flat_map(|who| TREES.map(|script| (*who, script))) {
            let yard = Yard::new(who, Home::Outside);
            block_on(async {
                let scope = Scope::root("test");
                let mut process = start(sandbox, &yard, &scope, script);
                assert!(process.output().await.is_some(), "{tier:?} {who} {script}");
                process.kill();
                assert_eq!(process.wait().await.how, How::Killed, "{tier:?} {who} {script}");
                is_gone(&yard, Duration::ZERO);
                scope.close().await.unwrap();
            });
            let left: Vec<_> = std::fs::read_dir(&yard.root).unwrap().map(|it| it.unwrap().file_name()).collect();
            assert!(!left.contains(&".tether".into()), "what was put there is taken away: {left:?}");
        }
    }
}

/// A helper that is killed takes its namespace along. Without one, what has left the session goes on, and that is said.
#[test]
fn a_tree_whose_helper_is_killed_is_gone() {
    for (tier, sandbox, open) in usable() {
        if tier == Tier::WithoutNamespaces {
            assert!(open.iter().any(|line| line.starts_with("killing a tree")), "{open:?}");
            continue;
        }
        for (who, script) in Who::all().iter().flat_map(|who| TREES.map(|script| (*who, script))) {
            let yard = Yard::new(who, Home::Outside);
            block_on(async {
                let scope = Scope::root("test");
                let mut process = start(sandbox, &yard, &scope, script);
                assert!(process.output().await.is_some(), "{who} {script}");
                kill_process(Pid::from_raw(process.pid().cast_signed()).unwrap(), Signal::KILL).unwrap();
                assert!(matches!(process.wait().await.how, How::HelperDied { .. }), "{who} {script}");
                is_gone(&yard, Duration::from_secs(1));
                scope.close().await.unwrap();
            });
            // The next command takes away what the killed helper could not.
            let ran = crate::runs::confined(sandbox, &yard, Mode::WorkspaceWrite, &sh("true"));
            assert!(!yard.root.join(".tether").exists() && !yard.root.join(".git/modules").exists(), "{ran:?}");
        }
    }
}
