//! A command with which the harness talks.

use context::Scope;
use subprocess::{How, Output, Process, Spawn, Streams};

use crate::support::{Mark, marked, sh, within};

fn piped(script: &str) -> Spawn {
    Spawn { streams: Streams::Piped, ..sh(script) }
}

async fn all(output: &mut Output) -> String {
    let mut said = Vec::new();
    while let Some(piece) = within(output.next()).await {
        said.extend(piece);
    }
    String::from_utf8(said).unwrap()
}

#[tokio::test]
async fn each_stream_is_apart_and_its_end_is_seen() {
    let scope = Scope::root("test");
    let mut process = Process::spawn(&scope, piped("cat; echo done; echo careful >&2; exit 3")).unwrap();
    let mut pipes = process.pipes().unwrap();
    assert!(process.pipes().is_none(), "there is one of each");
    within(pipes.input.write_all(b"one\ntwo\n")).await.unwrap();
    drop(pipes.input);
    assert_eq!(all(&mut pipes.output).await, "one\ntwo\ndone\n");
    assert_eq!(all(&mut pipes.errors).await, "careful\n");
    assert_eq!(within(process.wait()).await.how, How::Exited(3));
    within(scope.close()).await.unwrap();
}

#[tokio::test]
async fn writing_to_what_is_gone_or_does_not_read_ends() {
    let scope = Scope::root("test");
    let mut process = Process::spawn(&scope, piped("echo up; exec sleep 1000")).unwrap();
    let mut pipes = process.pipes().unwrap();
    assert_eq!(within(pipes.output.next()).await.as_deref(), Some(&b"up\n"[..]));
    let more = vec![b'x'; 4 * 1024 * 1024];
    let (written, ()) = tokio::join!(within(pipes.input.write_all(&more)), async { process.kill() });
    written.unwrap_err();
    assert_eq!(within(process.wait()).await.how, How::Killed);
    within(pipes.input.write_all(b"x")).await.unwrap_err();
    assert_eq!(all(&mut pipes.output).await, "");
    within(scope.close()).await.unwrap();
}

#[tokio::test]
async fn everything_of_a_tree_can_be_asked_to_end() {
    let (scope, mark) = (Scope::root("test"), Mark::new());
    let script = "setsid sh -c 'trap \"echo below; exit\" TERM; echo up; while :; do sleep 0.01; done' & \
                  trap 'wait; echo above; exit 5' TERM; while :; do sleep 0.01; done";
    let spawn = piped(script);
    let mut process = Process::spawn(&scope, marked(spawn, &mark)).unwrap();
    let mut pipes = process.pipes().unwrap();
    assert_eq!(within(pipes.output.next()).await.as_deref(), Some(&b"up\n"[..]));
    process.terminate();
    let said = all(&mut pipes.output).await;
    assert!(said.contains("below\n") && said.contains("above\n"), "{said}");
    assert_eq!(within(process.wait()).await.how, How::Exited(5));
    mark.is_gone();
    process.terminate();
    within(scope.close()).await.unwrap();
}
