use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use context::{Ctx, Scope};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use subprocess::{Environment, Finished, Limits, Process, Spawn, Streams, guard, run};
use tokio_util::sync::CancellationToken;

/// Long enough for a slow machine; only a test that hangs meets it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Within what a tree is gone whose harness was killed.
pub(crate) const SECOND: Duration = Duration::from_secs(1);

const MARK: &str = "IT_MARK";

/// What every process of one tree has in its environment, and no other process.
#[derive(Clone, Debug)]
pub(crate) struct Mark(pub(crate) String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Processes that have it, zombies not counted.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let entry = format!("{MARK}={}", self.0);
        let has_it = |pid: &Pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        };
        let names = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| Pid::from_raw(name.parse().ok()?)).filter(has_it).collect()
    }

    #[track_caller]
    pub(crate) fn is_gone(&self) {
        self.is_gone_within(Duration::ZERO);
    }

    #[track_caller]
    pub(crate) fn is_gone_within(&self, time: Duration) {
        let until = Instant::now() + time;
        while let [first, ..] = self.processes()[..] {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let what =
                    |pid: &Pid| ["cmdline", "stat"].map(|file| fs::read_to_string(format!("/proc/{pid}/{file}")));
                let all = self.processes();
                panic!("{all:?} {:?} are left after {time:?}", all.iter().map(what).collect::<Vec<_>>());
            }
            if let Ok(process) = pidfd_open(first, PidfdFlags::empty()) {
                let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&Timespec::try_from(left).unwrap()));
            }
        }
    }
}

/// A shell under the guard.
pub(crate) fn sh(script: &str) -> Spawn {
    argv(&["sh", "-c", script])
}

pub(crate) fn argv(argv: &[&str]) -> Spawn {
    let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
    let (program, args, plan) = guard(&helper(), &argv, Path::new("/"));
    Spawn { program, args, plan, cwd: "/".into(), env: Environment::inherited(), streams: Streams::Captured }
}

pub(crate) fn marked(mut spawn: Spawn, mark: &Mark) -> Spawn {
    spawn.env = spawn.env.with(MARK, &mark.0);
    spawn
}

pub(crate) fn helper() -> PathBuf {
    "/proc/self/exe".into()
}

pub(crate) fn limits() -> Limits {
    Limits { timeout: DEADLINE, head: 8 * 1024, tail: 8 * 1024, spill: None }
}

/// Runs it to its end in a scope of its own.
pub(crate) async fn finish(spawn: Spawn) -> Finished {
    let scope = Scope::root("test");
    let finished = run_in(&scope, spawn, &limits()).await;
    within(scope.close()).await.unwrap();
    finished
}

pub(crate) async fn run_in(ctx: &Ctx, spawn: Spawn, limits: &Limits) -> Finished {
    let process = Process::spawn(ctx, spawn).unwrap();
    within(run(process, limits, &CancellationToken::new(), |_| {})).await
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, future).await.expect("it takes too long")
}

/// Reads until the command has said that it is ready.
pub(crate) async fn ready(process: &mut Process) {
    let mut said = Vec::new();
    while !said.windows(5).any(|five| five == b"ready") {
        let piece = within(process.output()).await;
        said.extend(piece.unwrap_or_else(|| panic!("it ended: {}", String::from_utf8_lossy(&said))));
    }
}
