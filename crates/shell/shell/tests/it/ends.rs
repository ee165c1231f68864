//! How commands end, and what is left of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::Mode;
use shell::{HEAD_LIMIT, Line, Shell, ShellError, TAIL_LIMIT};
use subprocess::How;
use tokio_util::sync::CancellationToken;

use crate::world::*;

/// A tree that ends by nothing but a kill, and says so when it is there.
const STUBBORN: &str = "trap '' TERM INT HUP; echo $$ > pids; \
    setsid sh -c 'echo $$ >> pids; echo ready; sleep 1000' & wait; sleep 1000";

/// Whether nothing of the tree that wrote its ids is left.
fn is_gone(world: &World) -> bool {
    let pids = std::fs::read_to_string(world.top.join("ws/pids")).unwrap();
    assert_eq!(pids.lines().count(), 2);
    pids.lines().all(|pid| !Path::new("/proc").join(pid).exists())
}

#[tokio::test]
async fn time_that_is_over_ends_all_of_it() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let ran = run(&shell, Line { timeout: Duration::from_secs(2), ..line(STUBBORN) }).await.unwrap();
    assert!(ran.finished.timed_out && !ran.finished.cancelled);
    assert_eq!((ran.finished.how, &*ran.finished.output.text), (How::Killed, "ready\n"));
    assert!(is_gone(&world));
    world.close().await;
}

#[tokio::test]
async fn a_cancel_ends_all_of_it() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let (cancelled, mut pieces) = (CancellationToken::new(), String::new());
    let mut each = |piece: &str| {
        pieces.push_str(piece);
        cancelled.cancel();
    };
    let ran = in_time(shell.run(line(STUBBORN), None, &cancelled, &mut each)).await.unwrap();
    assert!(ran.finished.cancelled && !ran.finished.timed_out);
    assert_eq!((&*ran.finished.output.text, &*pieces), ("ready\n", "ready\n"));
    assert!(is_gone(&world));
    world.close().await;
}

#[tokio::test]
async fn the_owners_end_ends_all_of_it() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let mut ready = Some(ready);
    let never = CancellationToken::new();
    let mut each = |_: &str| ready.take().into_iter().for_each(|ready| ready.send(()).expect("somebody waits"));
    let running = shell.run(line(STUBBORN), None, &never, &mut each);
    let World { agent, top, mode: _, dir: _dir } = world;
    let closing = async {
        is_ready.await.unwrap();
        agent.close().await.unwrap();
    };
    let (ran, ()) = in_time(async { tokio::join!(running, closing) }).await;
    assert_eq!(ran.unwrap().finished.how, How::Killed);
    let pids = std::fs::read_to_string(top.join("ws/pids")).unwrap();
    assert!(pids.lines().all(|pid| !Path::new("/proc").join(pid).exists()));
    let late = run(&shell, line("touch ran")).await.unwrap_err();
    assert!(matches!(late, ShellError::Closing) && !top.join("ws/ran").exists(), "{late}");
}

#[tokio::test]
async fn long_output_is_kept_in_a_file_that_goes_with_the_session() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let tmp: PathBuf = said(&shell, line("echo $TMPDIR")).await.into();
    let scratch = tmp.parent().unwrap().to_owned();
    assert_eq!(std::fs::metadata(&scratch).unwrap().permissions().mode() & 0o777, 0o700);

    let ran = run(&shell, line("seq 1 100000")).await.unwrap().finished;
    let spilled = ran.output.spilled.expect("it is too long to be shown");
    let all = std::fs::read_to_string(&spilled).unwrap();
    assert!(all.len() as u64 == ran.output.bytes && all.ends_with("\n100000\n"));
    assert!(spilled.starts_with(&scratch) && !spilled.starts_with(&tmp), "where no confined command writes");
    let text = ran.output.text;
    assert!(text.len() <= HEAD_LIMIT + TAIL_LIMIT + 300 && text.starts_with("1\n2\n") && text.ends_with("\n100000\n"));
    assert!(text.contains(spilled.to_str().unwrap()), "it says where all of it is");

    let short = run(&shell, line("seq 1 10")).await.unwrap().finished;
    assert_eq!(short.output.spilled, None);
    said(&shell, line("mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; chmod 0 $TMPDIR/a/b $TMPDIR/a")).await;
    world.close().await;
    assert!(!scratch.exists());
}

#[tokio::test]
async fn the_exit_status_is_the_lines() {
    let world = World::new(Mode::DangerFullAccess);
    let shell = world.shell(None);
    let table =
        [("true", How::Exited(0)), ("false; (exit 7)", How::Exited(7)), ("no-such-program-here", How::Exited(127))];
    for (command, want) in table {
        assert_eq!(run(&shell, line(command)).await.unwrap().finished.how, want, "{command}");
    }
    assert_eq!(run(&shell, line("if")).await.unwrap().finished.how, How::Exited(2), "a syntax error");
    world.close().await;
}
