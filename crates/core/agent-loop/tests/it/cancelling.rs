//! Cancelling a turn, wherever it is.

use std::sync::Arc;
use std::time::Duration;

use agent::{AgentRef, Inbox};
use llm::{Chunk, Finish};
use session::{AssistantMessage, TurnEnd, TurnReason, TurnStart};
use tokio::time::{Instant, sleep};
use tools::ToolOutput;

use crate::model::*;
use crate::support::*;

fn aborted(cause: &str) -> TurnReason {
    TurnReason::Aborted { cause: Some(cause.into()) }
}

fn cancels(agent: &AgentRef, cause: &'static str) -> Say {
    let agent = agent.clone();
    act(move || {
        agent.cancel(cause, Inbox::Keep);
    })
}

async fn goes_on(agent: &AgentRef) {
    assert_eq!(turn(agent, "and now?").await.reason, TurnReason::Completed);
}

#[tokio::test]
async fn a_stream_that_is_cancelled_keeps_its_prefix() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tool("read", async |_| panic!("it must not run"));
    let cancel = cancels(&agent, "the user");
    let thought = chunk(Chunk::Thought("hm".into()));
    stage.model.reply_with([vec![
        thought,
        text("half a "),
        call("read"),
        usage(3, 4),
        cancel,
        text("word"),
        Say::Hang,
    ]]);
    let outcome = turn(&agent, "go").await;
    assert_eq!(outcome.reason, aborted("the user"));
    assert_eq!(agent.session().latest::<TurnEnd>().unwrap().reason, aborted("the user"));
    let kept = agent.session().latest::<AssistantMessage>().unwrap();
    assert!(kept.interrupted && kept.message.text().starts_with("half a "), "{:?}", kept.message);
    assert!(messages(agent.session())[1].starts_with("Assistant: (hm) half a "), "calls that do not run are left out");
    assert_eq!(outcome.usage.total(), 7);
    assert_eq!(outcome.output.unwrap(), kept.message);
    goes_on(&agent).await;
    stage.close().await;
}

#[tokio::test]
async fn a_stream_that_is_cancelled_before_anything_arrived_leaves_no_reply() {
    let (stage, agent) = Stage::with_agent().await;
    stage.model.reply_with([vec![cancels(&agent, "the user"), Say::Hang]]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.reason, outcome.output), (aborted("the user"), None));
    assert_eq!(tags(agent.session(), 3), ["user/message", "step/start", "request/header", "step/end", "turn/end"]);
    goes_on(&agent).await;
    stage.close().await;
}

// D-23
#[tokio::test]
async fn a_cancel_that_lands_before_the_completion_is_an_abort() {
    let (stage, agent) = Stage::with_agent().await;
    // While the stream yields its end.
    stage.model.reply_with([vec![text("all of it"), cancels(&agent, "the user"), end(Finish::Stop)]]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.reason, outcome.output.unwrap().text().as_str()), (aborted("the user"), "all of it"));
    // While layers are asked whether the turn may stop.
    stage.around::<agent::OnTurnStop>(|stopping| {
        stopping.agent.cancel("in the last moment", Inbox::Keep);
        crate::chains::Does::Pass(stopping)
    });
    assert_eq!(turn(&agent, "go").await.reason, aborted("in the last moment"));
    stage.close().await;
}

#[tokio::test]
async fn what_came_in_for_a_cancelled_turn_is_not_lost() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    let (send, sent) = std::sync::mpsc::channel();
    let steers = act(move || {
        send.send(asked.steer("to the left").unwrap()).unwrap();
        asked.cancel("the user", Inbox::Keep);
    });
    stage.model.reply_with([vec![text("all of it"), steers, end(Finish::Stop)]]);
    in_time(agent.followup("go").unwrap().outcome()).await;
    assert_eq!(in_time(sent.recv().unwrap().outcome()).await.turn, 2);
    assert_eq!(messages(agent.session()), ["User: go", "Assistant: all of it", "User: to the left", "Assistant: done"]);
    stage.close().await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_before_its_first_step_takes_none() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    let observing = agent.session().observe(0, move |event| {
        if event.get::<TurnStart>().is_some() {
            asked.cancel("at once", Inbox::Keep);
        }
    });
    let outcome = turn(&agent, "go").await;
    assert_eq!(outcome.reason, aborted("at once"));
    assert_eq!(tags(agent.session(), 0), ["inbox/accepted", "inbox/claimed", "turn/start", "user/message", "turn/end"]);
    assert!(stage.model.requests().is_empty());
    drop(observing);
    goes_on(&agent).await;
    stage.close().await;
}

#[tokio::test]
async fn a_tool_that_is_cancelled_has_a_result_and_nothing_follows() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    stage.tool("tidy", move |call: tools::Call| {
        let asked = asked.clone();
        async move {
            asked.cancel("the user", Inbox::Keep);
            call.cancelled.cancelled().await;
            ToolOutput::error("stopped", "stopped half way")
        }
    });
    stage.model.reply_with([calls(&["tidy"])]);
    let outcome = turn(&agent, "go").await;
    assert_eq!(outcome.reason, aborted("the user"));
    assert_eq!(messages(agent.session()), ["User: go", "Assistant: [tidy]", "Tool: tidy! stopped half way"]);
    assert_eq!(stage.model.requests().len(), 1);
    goes_on(&agent).await;
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn tools_that_do_not_notice_are_given_up_and_all_have_results() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tool("deaf", async |_| std::future::pending().await);
    stage.tools(&["quick"]);
    stage.model.reply_with([calls(&["deaf", "quick", "deaf"])]);
    let person = agent.handle().clone();
    stage
        .app
        .spawn("person", context::Stop::Join, async move {
            sleep(Duration::from_secs(10)).await;
            person.cancel("the user", Inbox::Keep);
        })
        .unwrap();
    let began = Instant::now();
    assert_eq!(turn(&agent, "go").await.reason, aborted("the user"));
    assert_eq!(began.elapsed().as_secs(), 12);
    let want = ["Tool: deaf! `deaf` was cancelled", "Tool: quick: quick ran", "Tool: deaf! `deaf` was cancelled"];
    assert_eq!(messages(agent.session())[2..], want);
    goes_on(&agent).await;
    stage.close().await;
}

/// Even a tool that ends the turn does not complete one that was cancelled.
#[tokio::test]
async fn a_cancel_beats_a_tool_that_ends_the_turn() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    stage.tool("capture", move |_| {
        asked.cancel("the user", Inbox::Keep);
        async { ToolOutput { then: tools::Then::EndTurn, ..ToolOutput::text("kept") } }
    });
    stage.model.reply_with([calls(&["capture"])]);
    assert_eq!(turn(&agent, "go").await.reason, aborted("the user"));
    goes_on(&agent).await;
    stage.close().await;
}

#[tokio::test]
async fn messages_that_wait_run_after_the_cancelled_turn() {
    let (stage, agent) = Stage::with_agent().await;
    stage.model.reply_with([vec![text("one"), cancels(&agent, "the user"), Say::Hang]]);
    let first = agent.followup("one").unwrap();
    let second = agent.followup("two").unwrap();
    assert_eq!(in_time(first.outcome()).await.reason, aborted("the user"));
    assert_eq!(in_time(second.outcome()).await.reason, TurnReason::Completed);
    check_log(agent.session());
    stage.close().await;
}

/// The log of an agent that ends in the middle of a turn says so, and can be continued as it is.
#[tokio::test]
async fn an_agent_that_is_disposed_in_the_middle_closes_its_turn() {
    let (stage, agent) = Stage::with_agent().await;
    let reached = Arc::new(tokio::sync::Notify::new());
    let at_it = reached.clone();
    stage.model.reply_with([vec![text("half"), act(move || at_it.notify_one()), Say::Hang]]);
    let receipt = agent.followup("go").unwrap();
    in_time(reached.notified()).await;
    in_time(agent.dispose()).await.unwrap();
    let outcome = in_time(receipt.outcome()).await;
    assert_eq!((outcome.turn, outcome.reason), (1, TurnReason::Aborted { cause: None }));
    check_log(agent.session());
    assert_eq!(messages(agent.session()), ["User: go", "Assistant: half"]);
    let length = agent.session().len();
    let again = stage.reopened(agent.session());
    assert_eq!(again.len(), length, "there is nothing to close");
    let agent = stage.agent_of(again).await;
    goes_on(&agent).await;
    stage.close().await;
}
