//! What a turn leaves in the log, event by event.

use std::sync::Arc;

use agent::{OnTurnStop, TurnOutcome};
use llm::{Chunk, Content, Finish, ToolCall, Usage};
use pvec::PVec;
use session::{TurnReason, TurnStart};
use tools::{Then, ToolOutput};

use crate::chains::Does;
use crate::model::*;
use crate::support::*;

#[tokio::test]
async fn a_plain_turn() {
    let (stage, agent) = Stage::with_agent().await;
    stage.model.reply_with([vec![
        chunk(Chunk::Thought("hm".into())),
        chunk(Chunk::ThoughtSignature("seal".into())),
        text("hello, "),
        text("you"),
        usage(10, 3),
        end(Finish::Stop),
    ]]);
    let outcome = turn(&agent, "hi").await;
    let usage = Usage { input_tokens: 10, output_tokens: 3, cached_input_tokens: 0 };
    assert_eq!(outcome.output.as_ref().unwrap().text(), "hello, you");
    assert_eq!(outcome, TurnOutcome { turn: 1, reason: TurnReason::Completed, output: outcome.output.clone(), usage });
    insta::assert_snapshot!(lines(agent.session()), @r#"
    inbox/accepted {"id":0,"delivery":"followup","content":[{"type":"text","text":"hi"}],"source":{"kind":"prompt"}}
    inbox/claimed {"ids":[0]}
    turn/start {"turn":1}
    user/message {"id":0,"content":[{"type":"text","text":"hi"}],"source":{"kind":"prompt"}}
    step/start {"turn":1,"step":1}
    request/header {"reason":"initial","header":{"provider":"test","model":"model","sampling":{},"system":"","tools":[]}}
    assistant/message {"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"thinking","text":"hm","signature":"seal"},{"type":"text","text":"hello, you"}]},"usage":{"inputTokens":10,"outputTokens":3}}
    step/end {"turn":1,"step":1}
    turn/end {"turn":1,"reason":{"kind":"completed"}}
    "#);
    let request = &stage.model.requests()[0];
    assert_eq!((&*request.model, conversation(request)), ("model", vec!["User: hi".to_owned()]));
    stage.close().await;
}

#[tokio::test]
async fn a_turn_with_tools() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    stage.tool("write", async |call| {
        ToolOutput::error("sandbox-denied", format!("no: {}", call.arguments)).with_meta(&["seen by front doors"])
    });
    let write = ToolCall { call_id: "w".into(), name: "write".into(), arguments: "not json".into() };
    stage.model.reply_with([
        vec![text("let me see"), call_as("r", "read"), chunk(Chunk::ToolCall(write)), end(Finish::Stop)],
        says("that is all"),
    ]);
    let outcome = turn(&agent, "look").await;
    assert_eq!((outcome.reason, outcome.output.unwrap().text().as_str()), (TurnReason::Completed, "that is all"));
    insta::assert_snapshot!(lines(agent.session()), @r#"
    inbox/accepted {"id":0,"delivery":"followup","content":[{"type":"text","text":"look"}],"source":{"kind":"prompt"}}
    inbox/claimed {"ids":[0]}
    turn/start {"turn":1}
    user/message {"id":0,"content":[{"type":"text","text":"look"}],"source":{"kind":"prompt"}}
    step/start {"turn":1,"step":1}
    request/header {"reason":"initial","header":{"provider":"test","model":"model","sampling":{},"system":"","tools":[{"name":"read","description":"A fake.","inputSchema":{"type":"object"}},{"name":"write","description":"A fake.","inputSchema":{"type":"object"}}]}}
    assistant/message {"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"text","text":"let me see"},{"type":"tool-call","callId":"r","name":"read","arguments":"{}"},{"type":"tool-call","callId":"w","name":"write","arguments":"not json"}]}}
    tool/call {"turn":1,"step":1,"callId":"r","name":"read","arguments":"{}"}
    tool/call {"turn":1,"step":1,"callId":"w","name":"write","arguments":"not json"}
    tool/result {"turn":1,"step":1,"callId":"r","content":[{"type":"text","text":"read ran"}],"isError":false}
    tool/result {"turn":1,"step":1,"callId":"w","content":[{"type":"text","text":"no: not json"}],"isError":true,"error":{"code":"sandbox-denied"},"meta":["seen by front doors"]}
    step/end {"turn":1,"step":1}
    step/start {"turn":1,"step":2}
    assistant/message {"turn":1,"step":2,"message":{"role":"assistant","content":[{"type":"text","text":"that is all"}]}}
    step/end {"turn":1,"step":2}
    turn/end {"turn":1,"reason":{"kind":"completed"}}
    "#);
    let requests = stage.model.requests();
    let second = ["User: look", "Assistant: let me see [r] [w]", "Tool: r: read ran", "Tool: w! no: not json"];
    assert_eq!(conversation(&requests[1]), second);
    stage.close().await;
}

#[tokio::test]
async fn turns_are_counted_on_and_so_after_a_restart() {
    let (stage, agent) = Stage::with_agent().await;
    assert_eq!(turn(&agent, "one").await.turn, 1);
    assert_eq!(turn(&agent, "two").await.turn, 2);
    let agent = stage.resumed(agent).await;
    assert_eq!(turn(&agent, "three").await.turn, 3);
    assert_eq!(agent.session().latest::<TurnStart>().unwrap().turn, 3);
    let want = ["User: one", "Assistant: done", "User: two", "Assistant: done", "User: three"];
    assert_eq!(conversation(stage.model.requests().last().unwrap()), want);
    stage.close().await;
}

#[tokio::test]
async fn what_waits_is_read_with_the_prompt_in_one_step() {
    let (stage, agent) = Stage::with_agent().await;
    agent.inject("by the way").unwrap();
    turn(&agent, "go").await;
    assert_eq!(messages(agent.session()), ["User: by the way", "User: go", "Assistant: done"]);
    assert_eq!(stage.model.requests().len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn a_tool_may_end_the_turn() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    stage.tool("capture", async |_| ToolOutput { then: Then::EndTurn, ..ToolOutput::text("kept") });
    stage.model.reply_with([calls(&["capture", "read"])]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.reason, outcome.output), (TurnReason::Completed, None));
    assert_eq!(stage.model.requests().len(), 1, "the model is not asked again");
    let want = ["User: go", "Assistant: [capture] [read]", "Tool: capture: kept", "Tool: read: read ran"];
    assert_eq!(messages(agent.session()), want, "and its neighbours have their results");
    stage.close().await;
}

#[tokio::test]
async fn a_turns_output_is_the_last_thing_said_and_its_usage_the_sum() {
    let (stage, agent) = Stage::with_agent().await;
    stage.tools(&["read"]);
    stage.model.reply_with([
        vec![text("first"), usage(1, 2), usage(10, 20), call("read"), end(Finish::Stop)],
        vec![usage(100, 200), call("read"), end(Finish::Stop)],
        vec![chunk(Chunk::Thought("only a thought".into())), usage(1_000, 2_000), end(Finish::Stop)],
    ]);
    let outcome = turn(&agent, "go").await;
    assert_eq!(outcome.output.unwrap().text(), "first");
    assert_eq!((outcome.usage.input_tokens, outcome.usage.output_tokens), (1_110, 2_220));
    let outcome = turn(&agent, "again").await;
    assert_eq!(outcome.usage, Usage::default(), "each turn counts its own");
    stage.close().await;
}

#[tokio::test]
async fn a_reply_of_nothing_completes_the_turn_and_is_not_shown() {
    let (stage, agent) = Stage::with_agent().await;
    stage.model.reply_with([vec![usage(5, 0), end(Finish::Stop)]]);
    let outcome = turn(&agent, "go").await;
    assert_eq!((outcome.reason, outcome.output, outcome.usage.input_tokens), (TurnReason::Completed, None, 5));
    assert_eq!(messages(agent.session()), ["User: go"]);
    assert_eq!(count(agent.session(), "assistant/message"), 1, "what it cost is kept");
    stage.close().await;
}

/// Building a request costs the same for any history: what was said is shared, not copied.
#[tokio::test]
async fn a_request_shares_a_deep_history_with_the_log() {
    let (stage, agent) = Stage::with_agent().await;
    for n in 0..100 {
        turn(&agent, &format!("{n}")).await;
    }
    stage.model.requests();
    turn(&agent, "last").await;
    let asked = stage.model.requests().remove(0).messages;
    let logged: PVec<Arc<llm::Message>> = agent.session().messages().unwrap();
    assert_eq!((asked.len(), logged.len()), (201, 202));
    assert!(asked.iter().zip(logged.iter()).all(|(asked, logged)| Arc::ptr_eq(asked, logged)));
    stage.close().await;
}

#[tokio::test]
async fn the_message_that_was_sent_is_the_one_that_is_shown() {
    let (stage, agent) = Stage::with_agent().await;
    let message = Arc::new(llm::Message::user("hello"));
    let sent = message.clone();
    let input = agent::Input { message, ..agent::Input::prompt("") };
    in_time(agent.send(input).unwrap().outcome()).await;
    assert!(Arc::ptr_eq(&sent, &stage.model.requests()[0].messages.get(0).unwrap().clone()));
    let call = |message: &llm::Message| message.content.iter().any(|part| matches!(part, Content::ToolCall(_)));
    assert!(!agent.session().messages().unwrap().iter().any(|message| call(message)));
    stage.close().await;
}

/// What waits has a turn of its own, and no layer is asked.
#[tokio::test]
async fn nothing_keeps_a_turn_open_that_a_tool_ended() {
    let (stage, agent) = Stage::with_agent().await;
    stage.around::<OnTurnStop>(|stopping| {
        assert_ne!(stopping.outcome.turn, 1, "nobody is to be asked");
        Does::Pass(stopping)
    });
    let asked = agent.handle().clone();
    stage.tool("capture", move |_| {
        asked.steer("one more thing").unwrap();
        async { ToolOutput { then: Then::EndTurn, ..ToolOutput::text("kept") } }
    });
    stage.model.reply_with([calls(&["capture"])]);
    let outcome = in_time(agent.followup("go").unwrap().outcome()).await;
    assert_eq!((outcome.turn, outcome.reason, outcome.output), (1, TurnReason::Completed, None));
    in_time(agent.when_idle()).await;
    let want = ["User: go", "Assistant: [capture]", "Tool: capture: kept", "User: one more thing", "Assistant: done"];
    assert_eq!(messages(agent.session()), want);
    assert_eq!(agent.session().latest::<TurnStart>().unwrap().turn, 2);
    check_log(agent.session());
    stage.close().await;
}
