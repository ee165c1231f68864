use agent::Inbox;
use session::Delivery::{Followup, Inject, Steer};
use session::{Delivery, TurnReason};
use shuttle::future::spawn;

use crate::stage::{Stage, check, fates, pause, send};

const EACH: [Delivery; 3] = [Followup, Inject, Steer];

/// Two senders and one who cancels again and again: each message is read once, in order, and its sender hears of the turn
/// that read it.
#[test]
fn nothing_accepted_is_lost_or_read_twice() {
    check(|| async {
        let stage = Stage::new();
        let agent = stage.agent().await;
        let senders = [0, 1].map(|first| {
            let agent = agent.handle().clone();
            spawn(async move {
                let mut receipts = Vec::new();
                for n in 0..3 {
                    receipts.push(send(&agent, EACH[(first + n) % 3]).unwrap());
                    pause().await;
                }
                receipts
            })
        });
        let cancelling = spawn({
            let agent = agent.handle().clone();
            async move {
                for _ in 0..2 {
                    agent.cancel("enough", Inbox::Keep);
                    pause().await;
                }
            }
        });
        let mut receipts = Vec::new();
        for sender in senders {
            receipts.extend(sender.await.unwrap());
        }
        cancelling.await.unwrap();
        agent.when_idle().await;
        let fates = fates(&stage.session);
        assert_eq!(fates.len(), receipts.len());
        for (id, fate) in &fates {
            assert!(fate.claimed == 1 || !fate.wakes(), "{id:?} is forgotten: {fates:?}");
            assert_eq!((fate.claimed == 1, fate.discarded), (stage.turns.of(*id).is_some(), 0));
        }
        agent.dispose().await.unwrap();
        for receipt in receipts {
            let id = receipt.id();
            let outcome = receipt.outcome().await;
            let expected = match stage.turns.of(id) {
                Some(turn) => turn,
                // Injected behind the last that wakes: it stays.
                None => (0, TurnReason::Aborted { cause: Some("the agent ended".into()) }),
            };
            assert_eq!((outcome.turn, outcome.reason), expected);
        }
        stage.app.close().await.unwrap();
    });
}

/// The message comes at any moment of a turn that is being cancelled, from before it opens until after it has closed.
#[test]
fn a_message_that_comes_while_a_cancelled_turn_winds_down_is_run() {
    for delivery in [Followup, Steer] {
        check(move || async move {
            let stage = Stage::new();
            let agent = stage.agent().await;
            let first = agent.followup("first").unwrap();
            let cancelling = spawn({
                let agent = agent.handle().clone();
                async move { agent.cancel("enough", Inbox::Keep) }
            });
            let sending = spawn({
                let agent = agent.handle().clone();
                async move { send(&agent, delivery).unwrap() }
            });
            let (first_id, first) = (first.id(), first.outcome().await);
            assert_eq!((first.turn, first.reason), stage.turns.of(first_id).unwrap());
            let second = sending.await.unwrap();
            let (id, second) = (second.id(), second.outcome().await);
            assert!(second.turn == 2 || delivery == Steer, "a turn of its own");
            assert_eq!((second.turn, second.reason), stage.turns.of(id).unwrap());
            cancelling.await.unwrap();
            agent.when_idle().await;
            assert!(fates(&stage.session).values().all(|fate| fate.claimed == 1));
            agent.dispose().await.unwrap();
        });
    }
}

/// Whoever waits for quiet is told, and not before it is quiet.
#[test]
fn waiting_for_quiet_ends_when_it_is_quiet() {
    check(|| async {
        let stage = Stage::new();
        let agent = stage.agent().await;
        let sending = spawn({
            let agent = agent.handle().clone();
            async move {
                for delivery in [Followup, Steer] {
                    send(&agent, delivery).unwrap();
                }
                agent.session().len()
            }
        });
        let waiting = [0, 1].map(|_| {
            let (agent, turns) = (agent.handle().clone(), stage.turns.clone());
            spawn(async move {
                agent.followup("and this").unwrap();
                agent.when_idle().await;
                assert!(turns.count() >= 1, "its own message at least was read");
            })
        });
        let cancelling = spawn({
            let agent = agent.handle().clone();
            async move { agent.cancel("all of it", Inbox::Keep) }
        });
        for waiter in waiting {
            waiter.await.unwrap();
        }
        sending.await.unwrap();
        cancelling.await.unwrap();
        agent.when_idle().await;
        assert!(agent.is_idle());
        assert!(fates(&stage.session).values().all(|fate| fate.claimed == 1));
        agent.dispose().await.unwrap();
    });
}
