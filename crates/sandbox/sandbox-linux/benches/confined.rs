//! What it costs to confine a command.
#![expect(clippy::print_stdout, reason = "a bench prints its rows")]

#[path = "../../../core/session/benches/common/mod.rs"]
mod common;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::*;
use context::Scope;
use sandbox::{CommandLine, Confinement, Enforcement, Mode, SandboxProvider, Temp, Workspace};
use sandbox_linux::LinuxSandbox;
use subprocess::{Environment, How, Limits, Process, Spawn, Streams, guard, run};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 200;
const WORKS: &str = "the system works";

fn main() {
    let helper = subprocess::helper::run_if_asked().or_else(sandbox_linux::helper::run_if_asked);
    if let Some(code) = helper {
        std::process::exit(code);
    }
    if wanted("confined") {
        Bench::new().measure();
    }
}

struct Bench {
    runtime: Runtime,
    dir: TempDir,
    argv: Vec<OsString>,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect(WORKS);
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect(WORKS);
        for name in ["workspace/.git/hooks", "temp", "home"] {
            std::fs::create_dir_all(dir.path().join(name)).expect(WORKS);
        }
        for name in ["HEAD", "config"] {
            std::fs::write(dir.path().join("workspace/.git").join(name), "").expect(WORKS);
        }
        Self { runtime, dir, argv: vec!["true".into()] }
    }

    fn measure(&self) {
        let bare = || timed(|| Command::new("true").status().expect(WORKS)).0;
        let (guarded, bare) = fastest_of(ROUNDS, || self.guarded(), bare);
        figure("`true`, bare", bare, Unit::Time);
        figure("`true`, under the guard", guarded, Unit::Time);
        for (what, sandbox) in [
            ("confined", LinuxSandbox::new()),
            ("confined without namespaces", LinuxSandbox::new().without_namespaces()),
        ] {
            if let Enforcement::None(why) = sandbox.enforcement() {
                println!("`true`, {what}: not here: {why}");
                continue;
            }
            for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
                let (confined, guarded) = fastest_of(ROUNDS, || self.confined(&sandbox, mode), || self.guarded());
                let row = format!("`true`, {what}, {mode}");
                figure(&row, confined, Unit::Time);
                at_most(&format!("{row}, beyond the guard"), confined - guarded, Unit::Time, 0.005);
            }
        }
    }

    fn guarded(&self) -> Duration {
        let (program, args, plan) = guard(Path::new("/proc/self/exe"), &self.argv, &self.root());
        self.run(program, args, plan)
    }

    fn confined(&self, sandbox: &LinuxSandbox, mode: Mode) -> Duration {
        let temp = self.dir.path().join("temp");
        let workspace = Workspace::new(self.root()).temp(&temp).home(self.dir.path().join("home"));
        let boundary = workspace.boundary(mode);
        let confinement = Confinement { network: boundary.network(), boundary, temp: Temp::Private(temp) };
        let root = self.root();
        let command = CommandLine { argv: &self.argv, cwd: &root };
        let launch = sandbox.confine(&command, &confinement).expect(WORKS);
        self.run(launch.program, launch.args, launch.plan)
    }

    fn run(&self, program: std::path::PathBuf, args: Vec<OsString>, plan: Vec<u8>) -> Duration {
        let (cwd, env) = (self.root(), Environment::inherited());
        let spawn = Spawn { program, args, plan, cwd, env, streams: Streams::Captured };
        let limits = Limits { timeout: Duration::from_secs(10), head: 1_024, tail: 1_024, spill: None };
        let (took, finished) = timed(|| {
            self.runtime.block_on(async {
                let scope = Scope::root("bench");
                let process = Process::spawn(&scope, spawn).expect(WORKS);
                let finished = run(process, &limits, &CancellationToken::new(), |_| {}).await;
                scope.close().await.expect(WORKS);
                finished
            })
        });
        assert_eq!(finished.how, How::Exited(0), "{}", finished.output.text);
        took
    }

    fn root(&self) -> std::path::PathBuf {
        self.dir.path().join("workspace")
    }
}
