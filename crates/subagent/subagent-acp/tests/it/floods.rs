//! Children that write more than anybody wants.

use std::fs;
use std::time::Duration;

use subagent::StopReason;

use crate::world::{World, prompt, within};

/// The most memory that this process has had, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_messages_is_cut_and_takes_no_memory() {
    let world = World::new("").await;
    world.does("say first").await;
    let before = peak();
    let result = world.does("flood").await;
    let text = result.text();
    assert_eq!(result.reason, StopReason::Completed);
    assert!(text.starts_with("flooded ") && text.ends_with("bytes left out …]") && text.len() < 300_000);
    let grown = peak() - before;
    assert!(grown < 16, "{grown} MiB for 64 MB");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_complaints_holds_nobody_up() {
    let world = World::new("flood-errors").await;
    assert_eq!(world.does("say done").await.text(), "done");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_read_its_answers_is_not_read_either() {
    let world = World::with("", |mut config, _| {
        config.settings.graces.cancel = Duration::from_millis(200);
        config
    })
    .await;
    let parent = world.parent(None).await;
    let before = peak();
    let run = world.start(&parent, prompt("questions")).await.unwrap();
    let done = tokio::time::timeout(Duration::from_millis(1_500), run.result()).await;
    assert!(done.is_err(), "it waits for its questions to be read, and they for their answers: {done:?}");
    within(run.dispose()).await.unwrap();
    let answered = run.result().await.denials.total;
    assert!((64..5_000).contains(&answered), "as many as a pipe holds answers, of 10,000: {answered}");
    assert!(peak() - before < 16);
    world.mark.is_gone();
    drop(parent);
    world.close().await;
}

/// What it says and the nonsense that ends it are read at once.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_before_the_nonsense_is_heard() {
    let world = World::new("").await;
    for _ in 0..20 {
        let result = world.does("nonsense").await;
        assert_eq!(result.reason, StopReason::Error);
        let error = result.message.as_deref().unwrap_or_default();
        assert!(error.contains("1001 lines") && result.text() == "I begin", "{result:?}");
    }
    world.close().await;
}
