//! How a child ends, and what is told of it.

use std::time::Duration;

use session::TurnStart;
use subagent::{CallState, Doing, StopReason};
use subagent_acp::Config;

use crate::world::{World, prompt, within};

// D-23
#[tokio::test(flavor = "multi_thread")]
async fn each_end_of_a_turn_has_its_reason() {
    let world = World::new("").await;
    let table = [
        ("end_turn", StopReason::Completed, None),
        ("max_tokens", StopReason::MaxTokens, None),
        ("refusal", StopReason::Refusal, None),
        ("cancelled", StopReason::Aborted, None),
        ("max_turn_requests", StopReason::Error, Some("its own limit of requests")),
        ("went_home", StopReason::Error, Some("session/prompt")),
    ];
    for (stop, reason, message) in table {
        let result = world.does(&format!("stop {stop}")).await;
        assert_eq!(result.reason, reason, "{stop}: {result:?}");
        let told = result.message.as_deref().unwrap_or_default();
        assert!(message.map_or(told.is_empty(), |part| told.contains(part)), "{stop}: {told}");
    }
    world.close().await;
}

// D-23, D-66
#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_told_in_the_childs_own_words() {
    let world = World::with("", |mut config, _| {
        config.settings.env.push(("STUB_TOKEN".into(), "tok-5ecret".into()));
        config
    })
    .await;
    let result = world.does("fail").await;
    assert_eq!(result.reason, StopReason::Error);
    assert_eq!(result.message.as_deref(), Some("`session/prompt` failed: Internal error: the model is away"));
    let crashed = world.does("panic").await;
    let message = crashed.message.unwrap();
    assert_eq!(crashed.reason, StopReason::Error);
    assert_eq!(&*message, "it closed its output before it had answered `session/prompt`; it exited with code 101");
    let half = world.does("half").await;
    assert_eq!(half.reason, StopReason::Error);
    let leaky = world.does("leak").await.message.unwrap();
    assert!(leaky.len() <= 4_096 && leaky.ends_with("[…]") && !leaky.contains("5ecret"), "{leaky}");
    world.close().await;
}

// D-24
#[tokio::test(flavor = "multi_thread")]
async fn the_output_is_the_last_message_of_its_own_session() {
    let world = World::new("chatty").await;
    assert_eq!(world.does("say several words of it").await.text(), "several words of it");
    assert_eq!(world.does("silence").await.output, []);
    assert_eq!(world.does("strange").await.text(), "all the same");
    assert_eq!(world.does("unknown").await.text(), "-32601");
    assert_eq!(world.does("sh echo from the shell").await.text(), "from the shell\n");
    world.close().await;
}

// D-23, D-25
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_child_is_aborted_and_says_what_it_has_said() {
    let world = World::new("").await;
    let parent = world.parent(None).await;
    for (task, brisk) in [("wait", true), ("deaf", false)] {
        let up = world.says();
        let run = world.start(&parent, prompt(task)).await.unwrap();
        within(up).await;
        let before = std::time::Instant::now();
        within(run.dispose()).await.unwrap();
        world.mark.is_gone();
        let result = within(run.result()).await;
        assert_eq!((result.reason, &*result.text()), (StopReason::Aborted, "up"));
        assert_eq!(before.elapsed() < Duration::from_secs(2), brisk, "{task}: {:?}", before.elapsed());
    }
    drop(parent);
    world.close().await;
}

// D-64
#[tokio::test(flavor = "multi_thread")]
async fn one_that_does_not_end_by_itself_is_ended() {
    let hasty = |mut config: Config| {
        config.settings.graces.close = Duration::from_millis(100);
        config
    };
    let world = World::with("lingers", |config, _| hasty(config)).await;
    assert_eq!(world.does("say done").await.text(), "done");
    world.close().await;
}

// D-32
#[tokio::test(flavor = "multi_thread")]
async fn what_it_does_is_told_as_it_does_it() {
    let world = World::new("").await;
    let target = world.at("ws/made");
    world.does(&format!("write {}", target.display())).await;
    assert_eq!(world.read("ws/made").as_deref(), Some("written"));
    let told = world.told();
    let [Doing::Held(held), calls @ .., Doing::Says(says)] = &told[..] else { panic!("{told:?}") };
    assert!(held.starts_with("not confined: its parent has no override") && held.contains("partial"), "{held}");
    assert_eq!(&**says, "tried");
    let title = format!("Write {}", target.display());
    let states: Vec<_> = calls
        .iter()
        .map(|doing| match doing {
            Doing::Calls { call, title: of, state } => (&**call, **of == *title, *state),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(states, [("w", true, CallState::Pending), ("w", true, CallState::Done)]);
    world.close().await;
}

/// What a child does is in no log of this process.
#[tokio::test(flavor = "multi_thread")]
async fn the_parents_log_is_not_written() {
    let world = World::new("").await;
    let parent = world.parent(None).await;
    parent.session().append(TurnStart { turn: 1 }).unwrap();
    let before = parent.session().len();
    world.child(&parent, "say hello").await;
    assert_eq!(parent.session().len(), before);
    drop(parent);
    world.close().await;
}
