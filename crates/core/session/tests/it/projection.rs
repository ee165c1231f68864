//! What is computed from a log: the latest of each type, and what the model sees.

use std::sync::Arc;

use llm::{Content, Message, Role};
use session::*;

use crate::support::*;

#[test]
fn the_latest_of_each_type_wins() {
    let session = session();
    assert!(session.latest::<Mode>().is_none() && session.is_empty());
    session.append(mode("read-only")).unwrap();
    session.append(Note { n: 1 }).unwrap();
    let before = session.snapshot();
    session.append(mode("full-access")).unwrap();
    for n in 2..100 {
        session.append(Note { n }).unwrap();
    }
    let latest = session.latest::<Mode>().unwrap();
    assert_eq!((&*latest.mode, latest.event().seq(), latest.event().time()), ("full-access", 2, NOW));
    assert_eq!(session.latest::<Note>().unwrap().n, 99);
    assert_eq!(before.latest::<Mode>().unwrap().mode, "read-only", "a snapshot is one instant");
    assert_eq!((before.len(), session.len(), session.snapshot().len()), (2, 101, 101));
    let read = decode(&text(&session.snapshot()));
    assert_eq!(read.log().latest_event::<Mode>().unwrap().seq(), 2);
    assert_eq!((read.log().latest::<Note>().unwrap().n, read.log().latest::<Pin>()), (99, None));
}

#[test]
fn events_from_any_place() {
    let session = session();
    for n in 0..70 {
        session.append(Note { n }).unwrap();
    }
    let log = session.snapshot();
    for from in [0, 1, 31, 32, 64, 69, 70, 71, u64::MAX] {
        let seqs: Vec<u64> = log.events_from(from).map(Event::seq).collect();
        assert_eq!(seqs, (from.min(70)..70).collect::<Vec<_>>());
    }
    assert_eq!(log.events_from(0).rev().map(Event::seq).next(), Some(69));
    assert!(log.event(70).is_none() && log.event(u64::MAX).is_none());
}

fn conversation(session: &Session) {
    session.append(TurnStart { turn: 1 }).unwrap();
    user(session, "look");
    session.append(asks(1, 1, &["a"])).unwrap();
    let failed = ToolReturned { is_error: true, ..answer(1, 1, "a") };
    session.append(failed).unwrap();
    let silent = Arc::new(Message { role: Role::Assistant, content: Vec::new() });
    session.append(AssistantMessage { turn: 1, step: 2, message: silent, usage: None, interrupted: true }).unwrap();
    let said = Arc::new(Message::assistant("seen"));
    session.append(AssistantMessage { turn: 1, step: 2, message: said, usage: None, interrupted: false }).unwrap();
    accepted(session, "not yet shown");
    session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
}

#[test]
fn the_model_sees_what_the_log_holds() {
    let session = session();
    conversation(&session);
    let result = Content::ToolResult { call_id: "a".into(), content: vec![Content::text("done")], is_error: true };
    let whole = [
        Message::user("look"),
        Message { role: Role::Assistant, content: vec![call("a")] },
        Message { role: Role::Tool, content: vec![result] },
        Message::assistant("seen"),
    ];
    let messages = session.messages().unwrap();
    assert!(messages.iter().map(|message| &**message).eq(&whole), "an empty reply is no message: {messages:?}");
    assert!(session.snapshot().messages().unwrap().iter().map(|message| &**message).eq(&whole));
    let read = decode(&text(&session.snapshot()));
    assert!(read.log().messages().unwrap().iter().map(|message| &**message).eq(&whole));
    let resumed = reopened(&session);
    user(&resumed, "and now");
    assert_eq!(resumed.messages().unwrap().len(), 5, "appended before anyone had asked");
    user(&resumed, "and then");
    assert_eq!(shown(&resumed)[3..], ["seen", "and now", "and then"]);
    assert_eq!(shown(&session).len(), 4);
}

/// A message is converted once, whoever asks, however often.
#[test]
fn messages_are_shared() {
    let parent = session();
    turn(&parent, 1);
    let resumed = reopened(&parent);
    let (child, first) = (fork(&parent), parent.messages().unwrap());
    for (one, other) in [
        (first.clone(), parent.messages().unwrap()),
        (first, child.messages().unwrap()),
        (resumed.messages().unwrap(), resumed.messages().unwrap()),
        (resumed.messages().unwrap(), fork(&resumed).messages().unwrap()),
    ] {
        assert!(Arc::ptr_eq(one.get(0).unwrap(), other.get(0).unwrap()));
    }
}
