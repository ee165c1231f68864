//! What agents are told, and when they read it.

use std::sync::mpsc;
use std::time::Duration;

use agent::*;
use llm::{Content, Message, Role};
use session::{Delivery, MessageId, Source};

use crate::support::*;

#[tokio::test]
async fn followups_get_a_turn_each_in_order_and_each_its_own_outcome() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let receipts = ["one", "two", "three"].map(|text| agent.followup(text).unwrap());
    assert_eq!(receipts.each_ref().map(Receipt::id), [MessageId(0), MessageId(1), MessageId(2)]);
    for said in ["one", "two", "three"] {
        let turn = stage.turn().await;
        assert_eq!(turn.said, [said]);
        assert!(stage.is_quiet(), "one turn at a time");
        turn.complete().await;
    }
    for (receipt, turn) in receipts.into_iter().zip(1..) {
        let outcome = in_time(receipt.outcome()).await;
        assert_eq!((outcome.turn, outcome.output.unwrap().text()), (turn, format!("end of turn {turn}")));
    }
    let [accepted, claimed] = ["inbox/accepted", "inbox/claimed"];
    assert_eq!(tags(agent.session()), [accepted, accepted, accepted, claimed, claimed, claimed]);
    stage.close().await;
}

#[tokio::test]
async fn an_injected_message_wakes_nobody_and_goes_with_the_next_that_does() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let before = agent.inject("before").unwrap();
    let mut quiet = Box::pin(agent.when_idle());
    in_time(&mut quiet).await;
    assert!(agent.is_idle(), "with an injected message waiting");
    tokio::task::yield_now().await;
    assert!(stage.is_quiet());
    assert_eq!(agent.session().pending_len(), 1);

    let prompt = agent.followup("prompt").unwrap();
    agent.followup("later").unwrap();
    let after = agent.inject("after").unwrap();
    assert!(!agent.is_idle());
    let turn = stage.turn().await;
    assert_eq!(turn.said, ["before", "prompt", "after"], "as they were accepted");
    turn.complete().await;
    for receipt in [before, prompt, after] {
        assert_eq!(in_time(receipt.outcome()).await.turn, 1);
    }
    assert_eq!(stage.turn().await.said, ["later"]);
    stage.close().await;
}

#[tokio::test]
async fn a_steering_message_is_read_at_the_next_step_and_opens_a_turn_only_without_one() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let alone = agent.steer("alone").unwrap();
    let turn = stage.turn().await;
    assert_eq!(turn.said, ["alone"]);
    let followup = agent.followup("after that").unwrap();
    let (steer, inject) = (agent.steer("left").unwrap(), agent.inject("by the way").unwrap());
    assert_eq!(turn.next_step().await, ["left", "by the way"], "a followup is left alone");
    assert_eq!(turn.next_step().await, [""; 0], "once");
    assert_eq!(agent.session().pending_len(), 1);
    turn.complete().await;
    for receipt in [alone, steer, inject] {
        assert_eq!(in_time(receipt.outcome()).await.turn, 1, "settled with the turn that took it in");
    }
    let turn = stage.turn().await;
    assert_eq!(turn.said, ["after that"]);
    let late = agent.steer("too late").unwrap();
    turn.complete().await;
    assert_eq!(in_time(followup.outcome()).await.turn, 2);
    // The turn ended without another step.
    let turn = stage.turn().await;
    assert_eq!(turn.said, ["too late"]);
    turn.complete().await;
    assert_eq!(in_time(late.outcome()).await.turn, 3);
    stage.close().await;
}

#[tokio::test]
async fn a_step_without_messages_writes_nothing() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    agent.followup("go").unwrap();
    let turn = stage.turn().await;
    let length = agent.session().len();
    agent.followup("not for this turn").unwrap();
    assert_eq!(turn.next_step().await, [""; 0]);
    assert_eq!(agent.session().len(), length + 1, "the followup, and no claim of nothing");
    stage.close().await;
}

#[tokio::test]
async fn a_message_may_say_who_sent_it_and_in_parts() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let content = vec![Content::text("a"), Content::Image { media_type: "image/png".into(), data: "eA==".into() }];
    let message = std::sync::Arc::new(Message { role: Role::User, content });
    let input = Input { message: message.clone(), source: Source::Report, delivery: Delivery::Steer };
    agent.send(input).unwrap();
    let waiting = &agent.session().pending()[0];
    assert_eq!((waiting.source, waiting.delivery), (Source::Report, Delivery::Steer));
    assert!(std::sync::Arc::ptr_eq(&waiting.message, &message));
    assert_eq!(Input::from("x").source, Source::Prompt);
    assert_eq!(stage.turn().await.said, ["a"]);
    stage.close().await;
}

#[tokio::test]
async fn an_inbox_is_bounded() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    agent.followup("opens").unwrap();
    let turn = stage.turn().await;
    let all = [AgentRef::followup, AgentRef::steer, AgentRef::inject];
    for n in 0..PENDING_LIMIT {
        all[n % 3](agent.handle(), format!("{n}")).expect("there is room");
    }
    let length = agent.session().len();
    for send in all {
        let full = send(agent.handle(), "one too many".to_owned()).unwrap_err();
        assert_eq!(full, SendError::Full);
        assert_eq!(full.to_string(), "the agent's inbox is full: 1000 messages wait");
    }
    assert_eq!(agent.session().len(), length, "what is refused leaves nothing");
    let read = turn.next_step().await.len();
    assert_eq!(read, 666);
    for n in 0..read {
        agent.followup(format!("there is room again {n}")).unwrap();
    }
    assert_eq!(agent.followup("and none again").unwrap_err(), SendError::Full);
    in_time(agent.dispose()).await.unwrap();
    assert_eq!(agent.followup("late").unwrap_err(), SendError::Gone, "whatever waits");
    stage.close().await;
}

#[tokio::test]
async fn a_message_is_bounded() {
    let most = 16 * 1024 * 1024;
    let stage = Stage::new();
    let agent = stage.agent().await;
    agent.inject("x".repeat(most)).expect("it fits");
    let text = || Content::text("x");
    let call = llm::ToolCall { call_id: "".into(), name: "".into(), arguments: "x".repeat(most).into() };
    let too_much = [
        vec![Content::text("x".repeat(most)), text()],
        vec![Content::Image { media_type: "".into(), data: "x".repeat(most).into() }, text()],
        vec![Content::Thinking { text: "x".repeat(most).into(), signature: None }, text()],
        vec![Content::ToolCall(call), text()],
        vec![Content::ToolResult {
            call_id: "".into(),
            content: vec![Content::text("x".repeat(most)), text()],
            is_error: false,
        }],
    ];
    let length = agent.session().len();
    for content in too_much {
        let message = std::sync::Arc::new(Message { role: Role::User, content });
        let input = Input { message, source: Source::Prompt, delivery: Delivery::Followup };
        assert_eq!(agent.send(input).unwrap_err(), SendError::TooLarge(most + 1));
    }
    assert_eq!(agent.session().len(), length);
    stage.close().await;
}

/// Whoever observes the log hears of a message while it is being sent, and may want to know more.
#[test]
fn an_observer_of_the_log_may_ask_the_agent_and_send_to_it() {
    let (done, finished) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let stage = Stage::new();
            let agent = stage.agent().await;
            let asked = agent.handle().clone();
            let observing = agent.session().observe(0, move |event| {
                asked.is_idle();
                asked.cancel("observed", Inbox::Keep);
                if event.seq() == 0 {
                    asked.inject("and another").unwrap();
                }
            });
            agent.inject("hello").unwrap();
            assert_eq!(agent.session().pending_len(), 2);
            agent.cancel("enough", Inbox::Discard);
            assert_eq!(tags(agent.session()), ["inbox/accepted", "inbox/accepted", "inbox/discarded"]);
            drop(observing);
            stage.close().await;
        });
        done.send(()).unwrap();
    });
    match finished.recv_timeout(Duration::from_secs(60)) {
        Ok(()) => {}
        Err(_) if thread.is_finished() => std::panic::resume_unwind(thread.join().unwrap_err()),
        Err(_) => panic!("an observer waits for the one who waits for it"),
    }
}

/// A receipt is there before anyone can settle the message, however fast the agent is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_receipt_is_lost_between_threads() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    for n in 1..=500 {
        let receipt = agent.followup("go").unwrap();
        stage.turn().await.complete().await;
        assert_eq!(in_time(receipt.outcome()).await.turn, n);
    }
    stage.close().await;
}
