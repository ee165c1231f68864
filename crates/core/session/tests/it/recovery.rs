//! What a crash left open is closed by the next open, once, and nothing is lost by it.

use session::*;

use crate::support::*;

/// Resumes what `session` would have left behind had its process died; the events that this added.
fn recovered(session: &Session) -> (Session, Vec<String>) {
    let resumed = reopened(session);
    let live = resumed.first_live_seq();
    assert_eq!(live, session.len(), "what recovery writes happens now");
    assert_eq!(lines(&resumed.snapshot())[..live as usize], lines(&session.snapshot()), "nothing is truncated");
    let added = lines(&resumed.snapshot()).split_off(live as usize);
    let again = reopened(&resumed);
    assert_eq!(lines(&again.snapshot()), lines(&resumed.snapshot()), "closed exactly once");
    (resumed, added)
}

fn interrupted(seq: u64, step: u32, id: &str) -> String {
    format!(
        concat!(
            r#"{{"seq":{},"time":1790000000123,"type":"tool/result","data":{{"turn":2,"step":{},"callId":"{}","#,
            r#""content":[{{"type":"text","text":"interrupted: the process ended before this call returned; it may have run in part"}}],"#,
            r#""isError":true,"error":{{"code":"interrupted"}}}}}}"#
        ),
        seq, step, id
    )
}

fn closes_step(seq: u64, step: u32) -> String {
    format!(r#"{{"seq":{seq},"time":1790000000123,"type":"step/end","data":{{"turn":2,"step":{step}}}}}"#)
}

fn closes_turn(seq: u64) -> String {
    format!(
        r#"{{"seq":{seq},"time":1790000000123,"type":"turn/end","data":{{"turn":2,"reason":{{"kind":"interrupted"}}}}}}"#
    )
}

/// A closed turn of three events, and the second turn open.
fn open_turn() -> Session {
    let session = session();
    turn(&session, 1);
    session.append(TurnStart { turn: 2 }).unwrap();
    session
}

#[test]
fn unanswered_calls_get_results_in_order_then_step_and_turn_end() {
    let session = open_turn();
    session.append(StepStart { turn: 2, step: 1 }).unwrap();
    session.append(asks(2, 1, &["a", "b", "c", "d"])).unwrap();
    session.append(answer(2, 1, "c")).unwrap();
    session.append(answer(2, 1, "a")).unwrap();
    let (resumed, added) = recovered(&session);
    assert_eq!(added, [interrupted(8, 1, "b"), interrupted(9, 1, "d"), closes_step(10, 1), closes_turn(11)]);
    assert_eq!(resumed.messages().unwrap().len(), 6, "every call has its answer");
    assert_eq!(resumed.snapshot().closed_len(), 12);
    assert_eq!(fork(&resumed).header().seed_length(), 12);
    turn(&resumed, 3);
}

#[test]
fn a_turn_may_be_interrupted_anywhere() {
    let session = open_turn();
    assert_eq!(recovered(&session).1, [closes_turn(4)]);
    session.append(StepStart { turn: 2, step: 1 }).unwrap();
    assert_eq!(recovered(&session).1, [closes_step(5, 1), closes_turn(6)]);
    session.append(asks(2, 1, &["a"])).unwrap();
    assert_eq!(recovered(&session).1, [interrupted(6, 1, "a"), closes_step(7, 1), closes_turn(8)]);
    session.append(answer(2, 1, "a")).unwrap();
    assert_eq!(recovered(&session).1, [closes_step(7, 1), closes_turn(8)]);
    session.append(StepEnd { turn: 2, step: 1 }).unwrap();
    assert_eq!(recovered(&session).1, [closes_turn(8)]);
    session.append(StepStart { turn: 2, step: 2 }).unwrap();
    assert_eq!(recovered(&session).1, [closes_step(9, 2), closes_turn(10)]);
    session.append(TurnEnd { turn: 2, reason: TurnReason::Completed }).unwrap();
    assert_eq!(recovered(&session).1, [""; 0]);
}

/// Some models count their calls anew in every response.
#[test]
fn ids_that_are_used_again() {
    let session = open_turn();
    session.append(asks(2, 1, &["0"])).unwrap();
    session.append(answer(2, 1, "0")).unwrap();
    session.append(asks(2, 2, &["0", "0"])).unwrap();
    assert_eq!(recovered(&session).1, [interrupted(7, 2, "0"), interrupted(8, 2, "0"), closes_turn(9)]);
    session.append(answer(2, 2, "0")).unwrap();
    assert_eq!(recovered(&session).1, [interrupted(8, 2, "0"), closes_turn(9)]);
    session.append(answer(2, 2, "0")).unwrap();
    assert_eq!(recovered(&session).1, [closes_turn(9)]);
}

#[test]
fn nothing_is_added_to_what_is_closed() {
    let session = session();
    assert_eq!(recovered(&session).1, [""; 0]);
    session.append(Note { n: 1 }).unwrap();
    user(&session, "outside any turn");
    assert_eq!(recovered(&session).1, [""; 0]);
    turn(&session, 1);
    session.append(Note { n: 2 }).unwrap();
    let (resumed, added) = recovered(&session);
    assert_eq!(added, [""; 0]);
    assert_eq!(resumed.append(Note { n: 3 }).unwrap(), 6, "and it goes on where it was");
}

/// A fork's own turns are what may be open, not its parent's.
#[test]
fn an_interrupted_fork() {
    let parent = open_turn();
    let child = fork(&parent);
    assert_eq!(recovered(&child).1, [""; 0]);
    child.append(TurnStart { turn: 2 }).unwrap();
    assert_eq!(recovered(&child).1, [closes_turn(5)]);
}

/// A turn may be given up in the process that ran it, with its own reason and its own answer to the calls.
#[test]
fn an_abandoned_turn() {
    let session = open_turn();
    session.append(StepStart { turn: 2, step: 1 }).unwrap();
    session.append(asks(2, 1, &["a", "b"])).unwrap();
    session.append(answer(2, 1, "a")).unwrap();
    let reason = TurnReason::Error { message: Some("it broke".into()) };
    session.abandon_turn(reason.clone(), "given up").unwrap();
    let log = session.snapshot();
    let result = log.event(7).unwrap().get::<ToolReturned>().unwrap();
    assert_eq!((&*result.call_id, result.is_error, result.content[0].as_text()), ("b", true, Some("given up")));
    assert_eq!(lines(&log)[8], closes_step(8, 1));
    assert_eq!(log.event(9).unwrap().get::<TurnEnd>().unwrap(), &TurnEnd { turn: 2, reason: reason.clone() });
    session.abandon_turn(reason.clone(), "given up").unwrap();
    assert_eq!(session.len(), 10, "nothing is open any more");
    session.append(TurnStart { turn: 3 }).unwrap();
    session.close();
    assert_eq!(session.abandon_turn(reason, "given up"), Err(Closed));
}

/// Accepted messages wait on: a crash interrupts a turn, not the queue.
#[test]
fn the_queue_survives() {
    let session = open_turn();
    let first = accepted(&session, "first");
    accepted(&session, "second");
    session.append(InboxClaimed { ids: vec![first] }).unwrap();
    let (resumed, added) = recovered(&session);
    assert_eq!(waiting(&resumed), ["second"]);
    assert_eq!(added.last(), Some(&closes_turn(8)));
    let said: Vec<String> = resumed.messages().unwrap().iter().map(|message| message.text()).collect();
    assert_eq!(said, ["prompt 1", "first"], "what was claimed has not been lost on its way into the conversation");
}

#[test]
fn a_damaged_open_turn_cannot_be_closed() {
    let start = r#"{"seq":0,"time":1,"type":"turn/start","data":{"turn":1}}"#;
    for (tag, data) in [
        ("assistant/message", r#"{"turn":1,"step":1,"message":"cut"}"#),
        ("tool/result", r#"{"turn":1}"#),
        ("step/start", r#"{"turn":1}"#),
        ("step/end", r#"{"step":1}"#),
    ] {
        let line = format!(r#"{{"seq":1,"time":1,"type":"{tag}","data":{data}}}"#);
        let decoded = decode(&log(&[start, &line]));
        match house().resume(decoded).unwrap_err() {
            ResumeError::Damaged(damaged) => assert_eq!((damaged.seq, &*damaged.tag), (1, tag)),
            other => panic!("{tag}: {other}"),
        }
    }
    let end = r#"{"seq":2,"time":1,"type":"turn/end","data":{"turn":1,"reason":{"kind":"completed"}}}"#;
    let line = r#"{"seq":1,"time":1,"type":"tool/result","data":{"turn":1}}"#;
    assert!(house().resume(decode(&log(&[start, line, end]))).is_ok(), "in a closed turn nothing depends on it");
}
