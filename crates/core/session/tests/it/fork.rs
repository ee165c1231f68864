//! Forks: the closed turns, their projections as they were then, and nothing of the open one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use llm::Message;
use serde::{Deserialize, Serialize};
use session::*;

use crate::support::*;

/// D-28
#[test]
fn a_fork_is_the_closed_turns() {
    let parent = session();
    parent.append(Note { n: 1 }).unwrap();
    for n in 1..=50 {
        turn(&parent, n);
    }
    let prefix = parent.snapshot();
    parent.append(TurnStart { turn: 51 }).unwrap();
    user(&parent, "open");
    parent.append(Note { n: 2 }).unwrap();
    let child = fork(&parent);
    let lineage = child.header().lineage().unwrap().clone();
    assert_eq!((child.header().seed_length(), child.first_live_seq(), child.len()), (151, 151, 152));
    assert_eq!((lineage.parent(), lineage.parent_seq(), lineage.depth()), (parent.id(), 154, 1));
    assert_eq!(lines(&child.snapshot())[..151], lines(&prefix), "byte for byte");
    assert_eq!(
        child.snapshot().event(151).unwrap().to_json(),
        format!(r#"{{"seq":151,"time":{NOW},"type":"session/end-seed","data":{{}}}}"#)
    );
    assert_eq!(child.latest::<Note>().unwrap().n, 1, "as of the closed turn");
    assert_eq!((child.latest::<TurnStart>().unwrap().turn, child.snapshot().closed_len()), (50, 151));
    assert_eq!((shown(&child).len(), shown(&parent).len()), (50, 51));
    assert_eq!((child.header().cwd(), child.header().created_at()), (parent.header().cwd(), NOW));
}

/// D-28: whatever the end of the turn was.
#[test]
fn a_turn_that_went_wrong_is_closed_too() {
    for reason in [TurnReason::Aborted { cause: None }, TurnReason::Error { message: None }, TurnReason::Interrupted] {
        let parent = session();
        parent.append(TurnStart { turn: 1 }).unwrap();
        parent.append(TurnEnd { turn: 1, reason }).unwrap();
        assert_eq!(fork(&parent).header().seed_length(), 2);
    }
}

/// D-28
#[test]
fn without_a_closed_turn_there_is_no_seed_and_no_end_of_one() {
    let parent = session();
    for open in [None, Some(TurnStart { turn: 1 })] {
        open.map(|open| parent.append(open).unwrap());
        user(&parent, "hello");
        let child = fork(&parent);
        assert_eq!((child.header().seed_length(), child.first_live_seq(), child.len()), (0, 0, 0));
        assert_eq!((child.snapshot().closed_len(), shown(&child).len()), (0, 0));
        assert!(child.latest::<UserMessage>().is_none());
    }
}

/// D-28: what the model is shown of a seed is the parent's, and is not made again.
#[test]
fn a_fork_makes_no_message_of_its_seed() {
    static MADE: AtomicUsize = AtomicUsize::new(0);

    #[derive(Serialize, Deserialize)]
    struct Counted {}

    impl Payload for Counted {
        const TAG: &'static str = "test/counted";
        const SHOWN: bool = true;

        fn message(&self) -> Option<Arc<Message>> {
            MADE.fetch_add(1, Ordering::SeqCst);
            Some(Arc::new(Message::user("counted")))
        }
    }

    let parent = session();
    parent.house().learn::<Counted>().unwrap();
    parent.append(Counted {}).unwrap();
    turn(&parent, 1);
    assert_eq!(shown(&fork(&parent)), ["counted", "prompt 1"]);
    assert_eq!(MADE.load(Ordering::SeqCst), 1);
    let resumed = reopened(&parent);
    resumed.append(Counted {}).unwrap();
    assert_eq!(shown(&resumed), ["counted", "prompt 1", "counted"]);
    let made = MADE.load(Ordering::SeqCst);
    assert_eq!(shown(&fork(&resumed)), ["counted", "prompt 1"]);
    assert_eq!(MADE.load(Ordering::SeqCst), made);
}

#[test]
fn a_spawned_child_has_nothing_of_its_parent() {
    let parent = session();
    turn(&parent, 1);
    let child = spawn(&parent);
    assert_eq!((child.header().seed_length(), child.first_live_seq(), child.len()), (0, 0, 0));
    assert_eq!(child.header().lineage().unwrap().parent_seq(), 3);
    assert!(child.latest::<TurnEnd>().is_none() && shown(&child).is_empty());
    assert!(child.snapshot().is_empty() && !parent.snapshot().is_empty());
}

#[test]
fn parent_and_child_diverge() {
    let parent = session();
    turn(&parent, 1);
    let child = fork(&parent);
    turn(&child, 2);
    user(&parent, "of the parent");
    assert_eq!(shown(&parent), ["prompt 1", "of the parent"]);
    assert_eq!(shown(&child), ["prompt 1", "prompt 2"]);
    assert_eq!(tags(&parent.snapshot())[3..], ["user/message"]);
    assert_eq!(tags(&child.snapshot())[3..], ["session/end-seed", "turn/start", "user/message", "turn/end"]);
    assert_eq!((parent.latest::<TurnEnd>().unwrap().turn, child.latest::<TurnEnd>().unwrap().turn), (1, 2));
}

/// The latest of a type is remembered as it was when the last turn closed, through any number of turns and switches.
#[test]
fn the_latest_in_a_fork_is_that_of_the_closed_turn() {
    let parent = session();
    let in_fork = || fork(&parent).latest::<Mode>().map(|latest| latest.mode.clone());
    turn(&parent, 1);
    parent.append(mode("a")).unwrap();
    assert_eq!(in_fork(), None, "first written behind the closed turn");
    parent.append(mode("b")).unwrap();
    assert_eq!(in_fork(), None);
    turn(&parent, 2);
    assert_eq!(in_fork().as_deref(), Some("b"));
    parent.append(mode("c")).unwrap();
    parent.append(mode("d")).unwrap();
    assert_eq!((in_fork().as_deref(), &*parent.latest::<Mode>().unwrap().mode), (Some("b"), "d"));
    turn(&parent, 3);
    turn(&parent, 4);
    assert_eq!(in_fork().as_deref(), Some("d"));
    let before = parent.snapshot();
    parent.append(mode("e")).unwrap();
    assert_eq!((in_fork().as_deref(), &*before.latest::<Mode>().unwrap().mode), (Some("d"), "d"));
    let child = fork(&parent);
    child.append(mode("f")).unwrap();
    assert_eq!(fork(&child).latest::<Mode>().unwrap().mode, "d", "the child closed no turn of its own");
    turn(&child, 5);
    assert_eq!(fork(&child).latest::<Mode>().unwrap().mode, "f");
}

#[test]
fn a_fork_of_a_fork_that_closed_nothing_has_the_same_seed() {
    let parent = session();
    turn(&parent, 1);
    let child = fork(&parent);
    child.append(TurnStart { turn: 2 }).unwrap();
    let grandchild = fork(&child);
    assert_eq!((grandchild.header().seed_length(), grandchild.first_live_seq()), (3, 3));
    assert_eq!(tags(&grandchild.snapshot())[2..], ["turn/end", "session/end-seed"]);
    turn(&child, 3);
    assert_eq!(fork(&child).header().seed_length(), 8, "its own end of a seed is history now");
    assert_eq!(shown(&fork(&child)), ["prompt 1", "prompt 3"]);
}

/// What was read is forked like what was written, before and after the messages have been asked for.
#[test]
fn forks_of_a_log_that_was_read() {
    let written = session();
    written.append(mode("a")).unwrap();
    turn(&written, 1);
    written.append(mode("b")).unwrap();
    let check = |parent: &Session| {
        let child = fork(parent);
        assert_eq!((child.header().seed_length(), shown(&child)), (4, vec!["prompt 1".to_owned()]));
        assert_eq!(child.latest::<Mode>().unwrap().mode, "a");
        assert_eq!(lines(&child.snapshot())[..4], lines(&written.snapshot())[..4]);
        turn(&child, 2);
        assert_eq!(shown(&child), ["prompt 1", "prompt 2"]);
    };
    let parent = reopened(&written);
    check(&parent);
    user(&parent, "open");
    check(&parent);
    assert_eq!(shown(&parent), ["prompt 1", "open"]);
    check(&parent);
    let child = fork(&reopened(&written));
    turn(&child, 2);
    assert_eq!(shown(&child), ["prompt 1", "prompt 2"], "projected when the child had grown");
    assert_eq!(shown(&fork(&child)), ["prompt 1", "prompt 2"]);
}

/// Said right behind a closed turn, and projected only after it was read.
#[test]
fn what_follows_a_closed_turn_is_not_in_a_fork() {
    let written = session();
    turn(&written, 1);
    user(&written, "behind it");
    let parent = reopened(&written);
    assert_eq!(shown(&parent), ["prompt 1", "behind it"]);
    assert_eq!(shown(&fork(&parent)), ["prompt 1"]);
}

/// D-28: what a seed holds of an inbox is the parent's, in this process and the next.
#[test]
fn an_inbox_in_a_seed_is_history() {
    let parent = session();
    let first = accepted(&parent, "never claimed");
    turn(&parent, 1);
    let child = fork(&parent);
    assert_eq!((waiting(&parent), waiting(&child)), (vec!["never claimed".to_owned()], vec![]));
    assert!(waiting(&reopened(&child)).is_empty());
    let own = accepted(&child, "its own");
    assert_eq!((waiting(&child), waiting(&reopened(&child))), (vec!["its own".to_owned()], vec!["its own".to_owned()]));
    assert_eq!(own, MessageId(child.len() - 1));
    child.append(InboxClaimed { ids: vec![first, own] }).unwrap();
    assert!(waiting(&child).is_empty() && waiting(&reopened(&child)).is_empty());
    assert_eq!(waiting(&parent), ["never claimed"], "the child settles nothing of its parent's");
}

/// What a store relies on when it copies a fork's file from its parent's.
#[test]
fn a_fork_has_its_parents_events_and_no_others_are_the_same() {
    let parent = session();
    turn(&parent, 1);
    let (mine, its) = (parent.snapshot(), fork(&parent).snapshot());
    let other = session();
    turn(&other, 1);
    let other = other.snapshot();
    for seq in 0..mine.closed_len() {
        let event = mine.event(seq).unwrap();
        assert!(event.is_same(its.event(seq).unwrap()));
        assert!(!event.is_same(other.event(seq).unwrap()), "equal, and another one");
    }
}
