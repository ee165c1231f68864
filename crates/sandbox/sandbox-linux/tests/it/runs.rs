//! Running a command under the sandbox, or without one.

use std::ffi::OsString;
use std::time::Duration;

use context::Scope;
use sandbox::{CommandLine, Confinement, Mode, Network, SandboxProvider, Temp};
use sandbox_linux::LinuxSandbox;
use subprocess::{Environment, Finished, Limits, Process, Spawn, Streams, guard, run};
use tokio_util::sync::CancellationToken;

use crate::yard::Yard;

/// Long enough for a slow machine; only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) fn confinement(yard: &Yard, mode: Mode) -> Confinement {
    Confinement { boundary: yard.boundary(mode), network: Network::Denied, temp: Temp::Private(yard.temp.clone()) }
}

pub(crate) fn sh(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

/// Runs it in the workspace, under `mode`.
pub(crate) fn confined(sandbox: &LinuxSandbox, yard: &Yard, mode: Mode, argv: &[OsString]) -> Finished {
    confined_by(sandbox, yard, &confinement(yard, mode), argv)
}

pub(crate) fn confined_by(
    sandbox: &LinuxSandbox,
    yard: &Yard,
    confinement: &Confinement,
    argv: &[OsString],
) -> Finished {
    let launch = sandbox.confine(&CommandLine { argv, cwd: &yard.root }, confinement).unwrap();
    let env = environment(yard).with("TMPDIR", &launch.temp);
    let args = yard.who.step_down(launch.args);
    let program = launch.program;
    finish(Spawn { program, args, plan: launch.plan, cwd: yard.root.clone(), env, streams: Streams::Captured })
}

/// Runs it in the workspace with nothing to hold it.
pub(crate) fn unconfined(yard: &Yard, argv: &[OsString]) -> Finished {
    let (program, args, plan) = guard("/proc/self/exe".as_ref(), argv, &yard.root);
    let (args, env) = (yard.who.step_down(args), environment(yard).with("TMPDIR", &yard.temp));
    finish(Spawn { program, args, plan, cwd: yard.root.clone(), env, streams: Streams::Captured })
}

fn environment(yard: &Yard) -> Environment {
    yard.variables().into_iter().fold(Environment::inherited(), |env, (name, value)| env.with(name, value))
}

fn finish(spawn: Spawn) -> Finished {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let finished = async {
        let scope = Scope::root("test");
        let process = Process::spawn(&scope, spawn).unwrap();
        let limits = Limits { timeout: Duration::from_secs(60), head: 64 * 1024, tail: 64 * 1024, spill: None };
        let finished = run(process, &limits, &CancellationToken::new(), |_| {}).await;
        scope.close().await.unwrap();
        finished
    };
    let finished = runtime.block_on(async { tokio::time::timeout(DEADLINE, finished).await });
    finished.expect("it takes too long")
}
