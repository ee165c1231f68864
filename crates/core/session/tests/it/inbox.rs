//! What was accepted and waits.

use session::*;

use crate::support::*;

/// The same before and after the log was written and read.
fn waits(session: &Session, expected: &[&str]) {
    assert_eq!(waiting(session), expected);
    assert_eq!(waiting(&reopened(session)), expected);
}

#[test]
fn accepted_claimed_discarded() {
    let session = session();
    waits(&session, &[]);
    let (a, b) = (accepted(&session, "a"), accepted(&session, "b"));
    waits(&session, &["a", "b"]);
    let c = accepted(&session, "c");
    session.append(InboxClaimed { ids: vec![b] }).unwrap();
    waits(&session, &["a", "c"]);
    session.append(Note { n: 1 }).unwrap();
    session.append(InboxDiscarded { ids: vec![a, MessageId(99)], cause: "cleared".into() }).unwrap();
    waits(&session, &["c"]);
    session.append(InboxClaimed { ids: vec![a, b] }).unwrap();
    session.append(InboxClaimed { ids: vec![] }).unwrap();
    waits(&session, &["c"]);
    accepted(&session, "d");
    session.append(InboxClaimed { ids: vec![c] }).unwrap();
    waits(&session, &["d"]);
    let waiting = session.pending();
    assert_eq!((waiting[0].id, waiting[0].event().seq(), waiting[0].delivery), (MessageId(8), 8, Delivery::Followup));
}

#[test]
fn it_is_known_whether_one_that_opens_a_turn_waits() {
    let session = session();
    let accept = |delivery| accepted_as(&session, delivery, "go");
    let claim = |id| session.append(InboxClaimed { ids: vec![id] }).unwrap();
    let opens = |expected, why: &str| {
        assert_eq!((session.has_waker(), reopened(&session).has_waker()), (expected, expected), "{why}");
    };
    opens(false, "nothing waits");
    let quiet = accept(Delivery::Inject);
    opens(false, "one that is seen by the next turn opens none");
    for delivery in [Delivery::Followup, Delivery::Steer] {
        let (first, second) = (accept(delivery), accept(delivery));
        opens(true, "two do");
        claim(first);
        opens(true, "one does");
        claim(second);
        opens(false, "what was claimed opens nothing");
    }
    let last = accept(Delivery::Followup);
    claim(quiet);
    opens(true, "a quiet one that was claimed counted for nothing");
    let message = std::sync::Arc::new(llm::Message::user("stay"));
    let again = InboxAccepted { id: last, delivery: Delivery::Inject, message, source: Source::Prompt };
    session.append(again).unwrap();
    opens(false, "the last word on a message counts");
}

#[test]
fn settling_looks_and_appends_in_one_step() {
    let session = session();
    let nothing =
        session.append_of_pending(|waiting| waiting.first().map(|first| InboxClaimed { ids: vec![first.id] }));
    assert_eq!((nothing, session.len()), (Ok(None), 0), "nothing to settle is nothing to say");
    accepted(&session, "a");
    accepted(&session, "b");
    let oldest = session.append_of_pending(|waiting| {
        assert_eq!(waiting.len(), 2);
        Some(InboxClaimed { ids: vec![waiting[0].id] })
    });
    assert_eq!(oldest, Ok(Some(2)));
    waits(&session, &["b"]);
    session.close();
    let late = session.append_of_pending(|_| -> Option<InboxClaimed> { panic!("a closed log settles nothing") });
    assert_eq!(late, Err(Closed));
    waits(&session, &["b"]);
}

#[test]
fn a_claimed_message_is_history_whatever_becomes_of_the_turn() {
    let session = session();
    let id = accepted(&session, "a");
    session.append(TurnStart { turn: 1 }).unwrap();
    session.append(InboxClaimed { ids: vec![id] }).unwrap();
    waits(&session, &[]);
    turn(&reopened(&session), 2);
}

/// D-49, as far as the log goes: whatever of an accepted message has reached the disk, the next activation has it.
#[test]
fn nothing_accepted_is_lost_wherever_the_file_ends() {
    let session = session();
    let a = accepted(&session, "a");
    session.append(TurnStart { turn: 1 }).unwrap();
    session.append(InboxClaimed { ids: vec![a] }).unwrap();
    let b = accepted(&session, "b");
    session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
    session.append(InboxDiscarded { ids: vec![b], cause: "cleared".into() }).unwrap();
    let whole = text(&session.snapshot());
    let expected: [&[&str]; 7] = [&[], &["a"], &["a"], &[], &["b"], &["b"], &[]];
    for (events, expected) in expected.iter().enumerate() {
        let cut: String = whole.split_inclusive('\n').take(events + 1).collect();
        let resumed = session.house().resume(decode(&cut)).unwrap();
        assert_eq!(waiting(&resumed), *expected, "after {events} events");
    }
}
