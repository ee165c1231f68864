//! Messages that come in while a turn is open.

use agent::Receipt;
use llm::Finish;
use session::TurnReason;
use tools::ToolOutput;

use crate::model::*;
use crate::support::*;

async fn turns_of(receipts: impl IntoIterator<Item = Receipt>) -> Vec<u32> {
    let mut turns = Vec::new();
    for receipt in receipts {
        let outcome = in_time(receipt.outcome()).await;
        assert_eq!(outcome.reason, TurnReason::Completed);
        turns.push(outcome.turn);
    }
    turns
}

#[tokio::test]
async fn a_steer_lands_at_the_next_step_and_a_followup_after_the_turn() {
    let (stage, agent) = Stage::with_agent().await;
    let (asked, sent) = (agent.handle().clone(), std::sync::Arc::new(std::sync::Mutex::new(Vec::new())));
    let sends = sent.clone();
    stage.tool("work", move |_| {
        let mut sent = sends.lock().unwrap();
        sent.push(asked.followup("afterwards").unwrap());
        sent.push(asked.steer("to the left").unwrap());
        sent.push(asked.inject("by the way").unwrap());
        async { ToolOutput::text("worked") }
    });
    stage.model.reply_with([calls(&["work"]), says("went left"), says("did that too")]);
    assert_eq!(turn_of(&agent, "go").await, 1);
    let sent = std::mem::take(&mut *sent.lock().unwrap());
    assert_eq!(turns_of(sent).await, [2, 1, 1]);
    let want = [
        "User: go",
        "Assistant: [work]",
        "Tool: work: worked",
        "User: to the left",
        "User: by the way",
        "Assistant: went left",
        "User: afterwards",
        "Assistant: did that too",
    ];
    assert_eq!(messages(agent.session()), want);
    check_log(agent.session());
    stage.close().await;
}

async fn turn_of(agent: &agent::AgentRef, text: &str) -> u32 {
    in_time(agent.followup(text).unwrap().outcome()).await.turn
}

#[tokio::test]
async fn a_steer_during_the_last_reply_keeps_the_turn_open() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    let (send, sent) = std::sync::mpsc::channel();
    let steer = act(move || send.send(asked.steer("one more thing").unwrap()).unwrap());
    stage.model.reply_with([vec![text("bye"), steer, end(Finish::Stop)], says("that too")]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.turn, outcome.output.unwrap().text().as_str()), (1, "that too"));
    assert_eq!(turns_of([sent.recv().unwrap()]).await, [1]);
    let want = ["User: go", "Assistant: bye", "User: one more thing", "Assistant: that too"];
    assert_eq!(messages(agent.session()), want);
    assert_eq!(count(agent.session(), "turn/start"), 1);
    stage.close().await;
}

/// A turn that fails is over: what came in for it is not lost.
#[tokio::test]
async fn a_steer_into_a_turn_that_fails_gets_a_turn_of_its_own() {
    let (stage, agent) = Stage::with_agent().await;
    let asked = agent.handle().clone();
    let (send, sent) = std::sync::mpsc::channel();
    let steer = act(move || send.send(asked.steer("to the left").unwrap()).unwrap());
    stage.model.reply_with([vec![text("half"), steer]]);
    error_of(&turn_outcome(&agent, "go").await);
    assert_eq!(turns_of([sent.recv().unwrap()]).await, [2]);
    assert_eq!(messages(agent.session()), ["User: go", "Assistant: half", "User: to the left", "Assistant: done"]);
    check_log(agent.session());
    stage.close().await;
}

async fn turn_outcome(agent: &agent::AgentRef, text: &str) -> agent::TurnOutcome {
    in_time(agent.followup(text).unwrap().outcome()).await
}
