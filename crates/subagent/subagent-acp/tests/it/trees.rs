//! Children whose tools leave their session, their group and their parent, and ignore every signal that can be ignored: no
//! process of them is left, whatever their end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use sandbox::Mode;
use subagent::StopReason;

use crate::world::{Mark, World, prompt, within};

/// How often each end is tried, confined and not.
const TRIES: usize = 50;

/// Within what a tree is gone whose harness was killed.
const SOON: Duration = Duration::from_secs(5);

/// The first argument of a harness that is killed.
const HARNESS: &str = "__acp-harness";

pub(crate) fn run_if_asked() -> Option<i32> {
    let args: Vec<String> = std::env::args().collect();
    (args.get(1)? == HARNESS).then(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(harness(&args[2], args[3] == "confined"))
    })
}

/// Has a child that has planted its tree, and says so.
async fn harness(mark: &str, confined: bool) -> i32 {
    let world = World::with("", |mut config, _| {
        config.settings.env = vec![Mark(mark.to_owned()).variable()];
        config
    })
    .await;
    let parent = world.parent(confined.then_some(Mode::ReadOnly)).await;
    let _run = world.start(&parent, prompt("tree deaf")).await.unwrap();
    while !world.told().iter().any(|doing| matches!(doing, subagent::Doing::Says(_))) {
        tokio::task::yield_now().await;
    }
    std::io::stdout().write_all(b"planted\n").unwrap();
    std::future::pending().await
}

fn modes() -> impl Iterator<Item = Option<Mode>> {
    [None, Some(Mode::WorkspaceWrite)].into_iter().cycle().take(TRIES * 2)
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_child_that_completed() {
    let world = World::new("").await;
    for mode in modes() {
        let parent = world.parent(mode).await;
        assert_eq!(world.child(&parent, "tree done").await.reason, StopReason::Completed);
        drop(parent);
    }
    world.close().await;
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_child_that_crashed() {
    let world = World::new("").await;
    for mode in modes() {
        let parent = world.parent(mode).await;
        let result = world.child(&parent, "tree crash").await;
        assert_eq!(result.reason, StopReason::Error, "{result:?}");
        assert!(result.message.as_deref().is_some_and(|message| message.contains("signal 6")), "{result:?}");
        drop(parent);
    }
    world.close().await;
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_child_that_was_cancelled_or_disposed() {
    let world = World::new("").await;
    for (mode, cancels) in modes().zip([true, true, false, false].into_iter().cycle()) {
        let parent = world.parent(mode).await;
        let request = prompt("tree hang");
        let cancelled = request.cancelled.clone();
        let planted = world.says();
        let run = world.start(&parent, request).await.unwrap();
        within(planted).await;
        if cancels {
            cancelled.cancel();
            assert_eq!(within(run.result()).await.reason, StopReason::Aborted);
        }
        within(run.dispose()).await.unwrap();
        world.mark.is_gone();
        assert_eq!(within(run.result()).await.reason, StopReason::Aborted);
        drop(parent);
    }
    world.close().await;
}

// D-64
#[test]
fn nothing_is_left_of_a_child_whose_harness_was_killed() {
    for confined in ["confined", "open"].into_iter().cycle().take(TRIES * 2) {
        let mark = Mark::new();
        let mut harness = Command::new(std::env::current_exe().unwrap());
        harness.args([HARNESS, &mark.0, confined]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut harness = harness.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(harness.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "planted\n");
        assert!(mark.processes().len() >= 6, "{confined}: {:?}", mark.processes());
        harness.kill().unwrap();
        harness.wait().unwrap();
        mark.is_gone_within(SOON);
    }
}
