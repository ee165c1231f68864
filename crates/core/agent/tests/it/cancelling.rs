//! Cancelling: the turn, and what waits behind it.

use agent::*;
use futures_util::FutureExt as _;
use session::InboxDiscarded;

use crate::support::*;

#[tokio::test]
async fn a_cancelled_turn_names_its_first_cause_and_what_waits_runs_next() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    assert!(!agent.cancel("nothing to cancel", Inbox::Keep));
    let first = agent.followup("first").unwrap();
    let turn = stage.turn().await;
    let (second, steered) = (agent.followup("second").unwrap(), agent.steer("steered").unwrap());
    assert!(!turn.cancelled.is_cancelled());
    assert!(agent.cancel("the user", Inbox::Keep));
    assert!(agent.cancel("somebody else", Inbox::Keep), "the turn is still open");
    assert!(turn.cancelled.is_cancelled());
    assert_eq!(aborted(&in_time(first.outcome()).await), (1, "the user"));
    for (receipt, said) in [(second, "second"), (steered, "steered")] {
        let turn = stage.turn().await;
        assert_eq!(turn.said, [said]);
        assert!(!turn.cancelled.is_cancelled(), "the next turn is another turn");
        turn.complete().await;
        in_time(receipt.outcome()).await;
    }
    assert!(agent.session().latest::<InboxDiscarded>().is_none());
    assert!(!agent.cancel("too late", Inbox::Keep));
    stage.close().await;
}

#[tokio::test]
async fn what_is_discarded_is_never_read_and_its_senders_hear_why() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let first = agent.followup("first").unwrap();
    let turn = stage.turn().await;
    let waiting = [agent.followup("a").unwrap(), agent.steer("b").unwrap(), agent.inject("c").unwrap()];
    let ids = waiting.each_ref().map(Receipt::id);
    assert!(agent.cancel("the user", Inbox::Discard));
    assert!(turn.cancelled.is_cancelled());
    assert_eq!(agent.session().pending_len(), 0);
    for receipt in waiting {
        let outcome = receipt.outcome().now_or_never().expect("at once");
        assert_eq!(aborted(&outcome), (0, "the user"));
        assert_eq!(outcome.output, None);
    }
    assert_eq!(aborted(&in_time(first.outcome()).await), (1, "the user"), "the turn's own message");
    let discarded = agent.session().latest::<InboxDiscarded>().unwrap();
    assert_eq!((&discarded.ids[..], &*discarded.cause), (&ids[..], "the user"));
    agent.followup("next").unwrap();
    assert_eq!(stage.turn().await.said, ["next"]);
    stage.close().await;
}

#[tokio::test]
async fn discarding_nothing_writes_nothing() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    assert!(!agent.cancel("nothing", Inbox::Discard));
    assert!(agent.session().is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_message_may_be_discarded_before_its_turn_opens() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    let receipt = agent.followup("never mind").unwrap();
    let mut idle = Box::pin(agent.when_idle());
    assert!((&mut idle).now_or_never().is_none(), "a turn would open");
    assert!(!agent.cancel("changed my mind", Inbox::Discard), "no turn was open");
    in_time(idle).await;
    assert_eq!(aborted(&in_time(receipt.outcome()).await), (0, "changed my mind"));
    agent.followup("this instead").unwrap();
    assert_eq!(stage.turn().await.said, ["this instead"]);
    stage.close().await;
}

#[tokio::test]
async fn idle_is_when_no_turn_is_open_and_none_would_open() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    in_time(agent.when_idle()).await;
    let receipts = [agent.followup("a").unwrap(), agent.followup("b").unwrap()];
    let mut idle = Box::pin(agent.when_idle());
    assert!((&mut idle).now_or_never().is_none());
    stage.turn().await.complete().await;
    let turn = stage.turn().await;
    assert!((&mut idle).now_or_never().is_none() && !agent.is_idle(), "one more to go");
    turn.complete().await;
    in_time(idle).await;
    for receipt in receipts {
        receipt.outcome().now_or_never().expect("settled before");
    }
    stage.close().await;
}

/// Two who race: one discards all that waits, the other opens turns. Whatever was discarded first is not in a turn that
/// goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_discarded_runs_in_no_turn_that_is_not_cancelled() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    for n in 0..500 {
        let receipt = agent.followup(format!("{n}")).unwrap();
        for _ in 0..n % 7 {
            std::thread::yield_now();
        }
        agent.cancel("race", Inbox::Discard);
        let outcome = in_time(receipt.outcome()).await;
        assert_eq!(aborted(&outcome).1, "race");
        in_time(agent.when_idle()).await;
    }
    stage.close().await;
}
