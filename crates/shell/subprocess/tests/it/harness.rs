//! A harness in a process of its own: one that can be killed, and whose descriptors and memory are nobody else's.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use context::Scope;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use subprocess::{Environment, How, Limits, Process, Spawn, SpawnError, SpillTo, Streams};

use crate::support::{Mark, finish, limits, marked, run_in, sh, within};

const HARNESS: &str = "__it-harness";

/// This executable as a harness that does one thing.
pub(crate) fn start(what: &str, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(HARNESS).arg(what).args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// The same from a parent that ignores signals, as `nohup` does.
pub(crate) fn deaf(command: &Command) -> Command {
    let mut deaf = Command::new("sh");
    deaf.args(["-c", "trap '' HUP INT QUIT USR1 PIPE TERM; exec \"$@\"", "sh"]).arg(command.get_program());
    deaf.args(command.get_args()).stdin(Stdio::null()).stdout(Stdio::piped());
    deaf
}

/// What such a harness says to its end.
pub(crate) fn says(mut command: Command) -> String {
    let child: Child = command.spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn run_if_asked() -> Option<i32> {
    let args: Vec<String> = std::env::args_os().skip(1).map(OsString::into_string).collect::<Result<_, _>>().ok()?;
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let [HARNESS, what, args @ ..] = &args[..] else { return None };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(within(async {
        match (*what, args) {
            ("hold", [mark, script]) => hold(mark, script).await,
            ("flood", [dir]) => flood(dir).await,
            ("script", [script]) => script_of(script).await,
            ("inherited", []) => inherited().await,
            ("descriptors", [file]) => descriptors(file).await,
            ("leaks", []) => leaks().await,
            ("scarce", []) => scarce().await,
            other => panic!("{other:?}"),
        }
    }));
    Some(0)
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Runs a command, says what it says, and waits to be killed.
async fn hold(mark: &str, script: &str) {
    let scope = Scope::root("harness");
    let mut process = Process::spawn(&scope, marked(sh(script), &Mark(mark.to_owned()))).unwrap();
    say("spawned\n");
    while let Some(piece) = process.output().await {
        say(&String::from_utf8_lossy(&piece));
    }
    std::future::pending().await
}

/// A hundred megabytes.
async fn flood(dir: &str) {
    let scope = Scope::root("harness");
    run_in(&scope, sh("yes warm up | head -c 1000000"), &limits()).await;
    let before = peak();
    let spill = SpillTo { dir: PathBuf::from(dir), most: u64::MAX };
    let limits = Limits { spill: Some(spill), ..limits() };
    let script = "echo first; yes 0123456789abcde | head -c 100000000; echo last";
    let finished = run_in(&scope, sh(script), &limits).await;
    assert_eq!(finished.how, How::Exited(0));
    say(&format!("{}\n{}", peak() - before, finished.output.text));
}

/// The most memory that this process has had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn script_of(script: &str) {
    say(&finish(sh(script)).await.output.text);
}

async fn inherited() {
    let finished = finish(Spawn { streams: Streams::Inherited, ..sh("cat; echo hello; exit 4") }).await;
    assert_eq!((finished.how, finished.output.bytes), (How::Exited(4), 0));
}

/// What a helper and its command have open while the harness has a file open for everybody.
async fn descriptors(file: &str) {
    let _open = open(Path::new(file), OFlags::RDONLY, Mode::empty()).unwrap();
    assert!(links("self").iter().any(|link| link == file));
    let scope = Scope::root("harness");
    let mut process = Process::spawn(&scope, sh("ls -l /proc/self/fd; echo ready; exec sleep 1000")).unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"ready\n") {
        said.extend(within(process.output()).await.unwrap());
    }
    say(&String::from_utf8(said).unwrap());
    say(&links(&process.pid().to_string()).join("\n"));
    within(scope.close()).await.unwrap();
}

fn links(process: &str) -> Vec<String> {
    let fds = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    fds.filter_map(|fd| Some(fs::read_link(fd.ok()?.path()).ok()?.to_string_lossy().into_owned())).collect()
}

/// Neither what works nor what fails keeps a descriptor.
async fn leaks() {
    let scope = Scope::root("harness");
    run_in(&scope, sh("true"), &limits()).await;
    let before = links("self");
    for _ in 0..20 {
        run_in(&scope, sh("true"), &limits()).await;
        let missing = Spawn { program: "/nowhere/helper".into(), ..sh("true") };
        assert!(matches!(Process::spawn(&scope, missing), Err(SpawnError::Helper { .. })));
        drop(Process::spawn(&scope, sh("sleep 1000")).unwrap());
        let stopped = scope.child("child").unwrap();
        let _process = Process::spawn(&stopped, sh("sleep 1000")).unwrap();
        within(stopped.close()).await.unwrap();
    }
    within(scope.close()).await.unwrap();
    let after = links("self");
    assert_eq!(after.len(), before.len(), "{before:?}\n{after:?}");
}

/// However few descriptors there are, a start works or fails whole.
async fn scarce() {
    let scope = Scope::root("harness");
    run_in(&scope, sh("true"), &limits()).await;
    let (open, limit) = (links("self").len() as u64, getrlimit(Resource::Nofile));
    let mut refused = 0;
    for few in 0..16 {
        setrlimit(Resource::Nofile, Rlimit { current: Some(open + few), ..limit }).unwrap();
        let process = Process::spawn(&scope, Spawn { env: Environment::inherited(), ..sh("true") });
        setrlimit(Resource::Nofile, limit).unwrap();
        match process {
            Ok(mut process) => assert_eq!(within(process.wait()).await.how, How::Exited(0)),
            Err(SpawnError::Pipe(_) | SpawnError::Helper { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..16).contains(&refused), "{refused}");
    within(scope.close()).await.unwrap();
    assert_eq!(links("self").len() as u64, open);
}
