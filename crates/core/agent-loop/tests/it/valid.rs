//! Whatever models, tools and people do: the log stays in order, and the history is one that every model API takes.

use std::time::Duration;

use agent::{AgentRef, Inbox};
use llm::{Chunk, Finish, LlmErrorKind};
use proptest::prelude::*;
use tools::{Then, ToolOutput};

use crate::model::*;
use crate::support::*;

/// A piece of a reply.
#[derive(Clone, Debug)]
enum Piece {
    Text,
    Thought,
    /// A call, by its tool; ids come again and again.
    Call(&'static str, u8),
    Cancel,
    CancelAll,
    Steer,
    Followup,
}

/// How a reply ends.
#[derive(Clone, Debug)]
enum Ending {
    End(Finish),
    Fail,
    CutOff,
    Panic,
}

fn piece() -> impl Strategy<Value = Piece> {
    let tool = prop::sample::select(vec!["ok", "fails", "panics", "ends", "cancels", "deaf", "steers", "unknown"]);
    prop_oneof![
        3 => Just(Piece::Text),
        2 => Just(Piece::Thought),
        6 => (tool, 0_u8..3).prop_map(|(tool, id)| Piece::Call(tool, id)),
        1 => Just(Piece::Cancel),
        1 => Just(Piece::CancelAll),
        1 => Just(Piece::Steer),
        1 => Just(Piece::Followup),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        10 => Just(Ending::End(Finish::Stop)),
        1 => Just(Ending::End(Finish::MaxTokens)),
        1 => Just(Ending::End(Finish::Refusal)),
        1 => Just(Ending::Fail),
        1 => Just(Ending::CutOff),
        1 => Just(Ending::Panic),
    ]
}

fn reply() -> impl Strategy<Value = (Vec<Piece>, Ending)> {
    (prop::collection::vec(piece(), 0..5), ending())
}

fn script(agent: &AgentRef, (pieces, ending): (Vec<Piece>, Ending)) -> Vec<Say> {
    let piece = |piece| {
        let agent = agent.clone();
        match piece {
            Piece::Text => text("t"),
            Piece::Thought => chunk(Chunk::Thought("h".into())),
            Piece::Call(tool, id) => call_as(&format!("id{id}"), tool),
            Piece::Cancel => act(move || assert!(agent.cancel("random", Inbox::Keep))),
            Piece::CancelAll => act(move || assert!(agent.cancel("random", Inbox::Discard))),
            Piece::Steer => act(move || drop(agent.steer("steer"))),
            Piece::Followup => act(move || drop(agent.followup("followup"))),
        }
    };
    let mut says: Vec<Say> = pieces.into_iter().map(piece).collect();
    match ending {
        Ending::End(finish) => says.push(end(finish)),
        Ending::Fail => says.push(fails(LlmErrorKind::ProviderFailed, "502")),
        Ending::CutOff => {}
        Ending::Panic => says.push(Say::Panic),
    }
    says
}

async fn play(replies: Vec<(Vec<Piece>, Ending)>, prompts: usize) {
    let (stage, agent) = Stage::with_agent().await;
    stage.tool("ok", async |_| ToolOutput::text("ok"));
    stage.tool("fails", async |_| ToolOutput::error("failed", "no"));
    stage.tool("panics", async |_| panic!("a bug"));
    stage.tool("ends", async |_| ToolOutput { then: Then::EndTurn, ..ToolOutput::text("end") });
    let cancels = agent.handle().clone();
    stage.tool("cancels", move |_| {
        cancels.cancel("by a tool", Inbox::Keep);
        async { ToolOutput::text("cancelled") }
    });
    stage.tool("deaf", |call| async move {
        call.session.append(session::SessionTitle { title: "deaf".into(), source: "model".into() }).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        ToolOutput::text("slept")
    });
    let steers = agent.handle().clone();
    stage.tool("steers", move |_| {
        drop(steers.steer("from a tool"));
        async { ToolOutput::text("steered") }
    });
    for reply in replies {
        stage.model.reply_with([script(&agent, reply)]);
    }
    for n in 0..prompts {
        in_time(agent.followup(format!("prompt {n}")).unwrap().outcome()).await;
    }
    in_time(agent.when_idle()).await;
    check_log(agent.session());
    let asked = stage.model.requests();
    for request in &asked {
        check_history(request.messages.iter());
    }
    check_prefixes(&stage, &agent);
    stage.close().await;
}

/// A process may die after any event: what is left can be continued, and its history is valid.
fn check_prefixes(stage: &Stage, agent: &AgentRef) {
    let whole = log_text(&agent.session().snapshot());
    let lines: Vec<&str> = whole.lines().collect();
    for length in 1..=lines.len() {
        let cut = lines[..length].join("\n") + "\n";
        let again = stage.sessions.resume(stage.sessions.vocabulary().decode(cut).unwrap()).unwrap();
        check_log(&again);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn random_models_leave_valid_logs(replies in prop::collection::vec(reply(), 1..8), prompts in 1_usize..4) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(replies, prompts));
    }
}
