//! What is left of a process that is killed, seen by the next.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use context::Scope;
use scratch::{Passing, Scratch};

const MAKES: &str = "__makes";
const WAITS: &str = "__waits-until-gone";
const DEADLINE: Duration = Duration::from_secs(60);

/// This executable is also the process that makes directories and is killed.
#[ctor::ctor]
fn before_main() {
    let args: Vec<String> = std::env::args().collect();
    let gone = match args.get(1).map(String::as_str) {
        Some(MAKES) => None,
        Some(WAITS) => args.get(2).map(PathBuf::from),
        _ => return,
    };
    // Not to be taken for a panic, which cannot leave from here.
    std::process::exit(if std::panic::catch_unwind(|| makes(gone.as_deref())).is_ok() { 0 } else { 1 });
}

/// Makes one, says where, and then waits for `gone`, or without it for the end of its input.
fn makes(gone: Option<&Path>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let session = Scope::root("session");
        let scratch = Scratch::make(&session).unwrap();
        std::fs::write(scratch.tmp().join("x"), "x").unwrap();
        let passing = Passing::make().unwrap();
        std::fs::create_dir_all(passing.path().join("a/b")).unwrap();
        std::fs::write(scratch.tmp().join("passing"), passing.path().to_str().unwrap()).unwrap();
        let mut out = std::io::stdout();
        writeln!(out, "{}", scratch.path().display()).unwrap();
        out.flush().unwrap();
        match gone {
            Some(gone) => {
                let is_gone = async {
                    while gone.exists() {
                        tokio::task::yield_now().await;
                    }
                };
                tokio::time::timeout(DEADLINE, is_gone).await.unwrap();
            }
            None => drop(std::io::stdin().read_line(&mut String::new())),
        }
        session.close().await.unwrap();
    });
}

fn start(place: &Path, args: &[&str]) -> (Child, PathBuf) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(args)
        .env("TMPDIR", place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, line.trim_end().into())
}

#[test]
fn what_a_killed_process_left_the_next_one_removes_and_nobody_elses() {
    let place = tempfile::tempdir().unwrap();
    let (mut killed, left) = start(place.path(), &[MAKES]);
    let (mut lives, theirs) = start(place.path(), &[MAKES]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(left.join("tmp/x").exists());
    let passing = |of: &Path| PathBuf::from(std::fs::read_to_string(of.join("tmp/passing")).unwrap());
    let (passed, passes) = (passing(&left), passing(&theirs));
    assert!(passed.join("a/b").exists());
    for n in 0..5_001 {
        std::fs::create_dir(place.path().join(format!("tether-{n:06}"))).unwrap();
    }

    let (mut next, own) = start(place.path(), &[WAITS, left.to_str().unwrap()]);
    assert!(next.wait().unwrap().success());
    assert!(!left.exists() && !own.exists());
    assert!(theirs.join("tmp/x").exists() && passes.join("a/b").exists(), "it is in use");

    drop(lives.stdin.take());
    assert!(lives.wait().unwrap().success());
    // The one that looked waits for one of the two; the next for the other.
    let (mut last, _) = start(place.path(), &[WAITS, passed.to_str().unwrap()]);
    assert!(last.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 5_001, "what has other names stays");
}

#[tokio::test]
async fn each_is_its_users_alone_and_goes_with_its_scope() {
    use std::os::unix::fs::PermissionsExt as _;
    let session = Scope::root("session");
    let (a, b) = (Scratch::make(&session).unwrap(), Scratch::make(&session).unwrap());
    assert_ne!(a.path(), b.path());
    for scratch in [&a, &b] {
        assert_eq!(std::fs::metadata(scratch.path()).unwrap().permissions().mode() & 0o7777, 0o700);
        assert!(scratch.tmp().is_dir() && scratch.output().is_dir());
        assert!(scratch.tmp().starts_with(scratch.path()) && !scratch.output().starts_with(scratch.tmp()));
    }
    tokio::time::timeout(DEADLINE, session.close()).await.unwrap().unwrap();
    assert!(!a.path().exists() && !b.path().exists());
    assert!(Scratch::make(&session_closed().await).is_err());
}

async fn session_closed() -> context::Ctx {
    let session = Scope::root("session");
    let ctx = context::Ctx::clone(&session);
    session.close().await.unwrap();
    ctx
}
