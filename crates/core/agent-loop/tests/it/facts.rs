//! Facts that change: told when they do, and not again.

use std::sync::Arc;

use session::{Source, UserMessage};
use system_prompt::RuntimeFact;

use crate::model::*;
use crate::support::*;

fn told(agent: &agent::AgentRef) -> Vec<String> {
    let log = agent.session().snapshot();
    let facts = log.events().iter().filter_map(|event| event.get::<UserMessage>());
    let facts = facts.filter(|message| message.source == Source::RuntimeContext);
    let inner = |text: String| {
        let inner = text.strip_prefix("<runtime-context>\n").and_then(|rest| rest.strip_suffix("\n</runtime-context>"));
        inner.expect("it is marked").to_owned()
    };
    facts.map(|message| inner(message.message.text())).collect()
}

async fn with_fact(fact: &Fact) -> (Stage, agent::Agent) {
    let stage = Stage::new().await;
    stage.app.register::<dyn RuntimeFact>("mode", Arc::new(fact.clone())).unwrap();
    let agent = stage.agent().await;
    (stage, agent)
}

#[tokio::test]
async fn a_fact_is_told_before_the_prompt_and_again_only_when_it_changes() {
    let fact = Fact::default();
    fact.set(Some("narrow"));
    let (stage, agent) = with_fact(&fact).await;
    turn(&agent, "1").await;
    let context = "User: <runtime-context>\nnarrow\n</runtime-context>";
    assert_eq!(messages(agent.session()), [context, "User: 1", "Assistant: done"]);
    turn(&agent, "2").await;
    assert_eq!(told(&agent), ["narrow"]);
    fact.set(Some("wide"));
    turn(&agent, "3").await;
    turn(&agent, "4").await;
    assert_eq!(told(&agent), ["narrow", "wide"]);
    // What is told is in the request that follows.
    let sizes: Vec<usize> = stage.model.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(sizes, [2, 4, 7, 9]);
    stage.close().await;
}

#[tokio::test]
async fn a_fact_that_falls_silent_is_not_told_and_told_again_only_if_it_is_another() {
    let fact = Fact::default();
    let (stage, agent) = with_fact(&fact).await;
    turn(&agent, "1").await;
    assert_eq!(told(&agent), [""; 0]);
    for (now, want) in
        [(Some("a"), &["a"][..]), (None, &["a"]), (Some("a"), &["a"]), (None, &["a"]), (Some("b"), &["a", "b"])]
    {
        fact.set(now);
        turn(&agent, "go").await;
        assert_eq!(told(&agent), want);
    }
    stage.close().await;
}

#[tokio::test]
async fn a_fact_that_changes_during_a_turn_is_told_at_its_next_step() {
    let fact = Fact::default();
    fact.set(Some("a"));
    let (stage, agent) = with_fact(&fact).await;
    let changes = fact.clone();
    stage.tool("switch", move |_| {
        changes.set(Some("b"));
        async { tools::ToolOutput::text("switched") }
    });
    stage.model.reply_with([calls(&["switch"])]);
    turn(&agent, "go").await;
    let want = [
        "User: <runtime-context>\na\n</runtime-context>",
        "User: go",
        "Assistant: [switch]",
        "Tool: switch: switched",
        "User: <runtime-context>\nb\n</runtime-context>",
        "Assistant: done",
    ];
    assert_eq!(messages(agent.session()), want);
    stage.close().await;
}

#[tokio::test]
async fn a_log_that_is_continued_knows_what_was_told() {
    let fact = Fact::default();
    fact.set(Some("a"));
    let (stage, agent) = with_fact(&fact).await;
    turn(&agent, "1").await;
    let agent = stage.resumed(agent).await;
    turn(&agent, "2").await;
    assert_eq!(told(&agent), ["a"], "nothing changed over the restart");
    let agent = stage.resumed(agent).await;
    fact.set(Some("b"));
    turn(&agent, "3").await;
    turn(&agent, "4").await;
    assert_eq!(told(&agent), ["a", "b"], "once");
    let agent = stage.resumed(agent).await;
    fact.set(None);
    turn(&agent, "5").await;
    fact.set(Some("b"));
    turn(&agent, "6").await;
    assert_eq!(told(&agent), ["a", "b"], "silence is nothing new");
    stage.close().await;
}
