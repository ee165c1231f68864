use agent::Inbox;
use session::Delivery::{Followup, Inject, Steer};
use session::TurnReason;
use shuttle::future::spawn;

use crate::stage::{Stage, check, fates, pause, send};

/// A message is read or discarded and never both, and its sender hears which.
#[test]
fn what_is_discarded_is_not_read() {
    check(|| async {
        let stage = Stage::new();
        let agent = stage.agent().await;
        let senders = [[Followup, Steer], [Inject, Followup]].map(|deliveries| {
            let agent = agent.handle().clone();
            spawn(async move {
                let mut receipts = Vec::new();
                for delivery in deliveries {
                    receipts.push(send(&agent, delivery).unwrap());
                    pause().await;
                }
                receipts
            })
        });
        let waiting = spawn({
            let agent = agent.handle().clone();
            async move { agent.when_idle().await }
        });
        let discarding = spawn({
            let agent = agent.handle().clone();
            async move {
                agent.cancel("away", Inbox::Discard);
            }
        });
        let mut receipts = Vec::new();
        for sender in senders {
            receipts.extend(sender.await.unwrap());
        }
        discarding.await.unwrap();
        waiting.await.unwrap();
        agent.when_idle().await;
        let fates = fates(&stage.session);
        let away = || TurnReason::Aborted { cause: Some("away".into()) };
        for (id, fate) in &fates {
            match (fate.claimed, fate.discarded) {
                (1, 0) | (0, 1) => {}
                (0, 0) => assert!(!fate.wakes(), "{id:?} is forgotten: {fates:?}"),
                _ => panic!("{id:?} was read and discarded: {fates:?}"),
            }
        }
        agent.dispose().await.unwrap();
        for receipt in receipts {
            let (id, outcome) = (receipt.id(), receipt.outcome().await);
            let told = (outcome.turn, outcome.reason);
            match (&fates[&id], stage.turns.of(id)) {
                (_, Some(turn)) => assert_eq!(told, turn),
                (fate, None) if fate.discarded == 1 => assert_eq!(told, (0, away())),
                (_, None) => assert_eq!(told, (0, TurnReason::Aborted { cause: Some("the agent ended".into()) })),
            }
        }
        stage.app.close().await.unwrap();
    });
}

/// If nothing was there to be stopped, nothing of what was sent before runs afterwards.
#[test]
fn what_was_sent_before_a_discard_is_done_or_stopped() {
    check(|| async {
        let stage = Stage::new();
        let agent = stage.agent().await;
        let receipt = agent.followup("go").unwrap();
        let discarding = spawn({
            let (agent, turns) = (agent.handle().clone(), stage.turns.clone());
            async move {
                let stopped = agent.cancel("away", Inbox::Discard);
                (stopped, turns.count())
            }
        });
        let waiting = spawn({
            let agent = agent.handle().clone();
            async move { agent.when_idle().await }
        });
        let outcome = receipt.outcome().await;
        let (stopped, done) = discarding.await.unwrap();
        match outcome.turn {
            0 => assert_eq!(outcome.reason, TurnReason::Aborted { cause: Some("away".into()) }),
            _ => assert!(stopped || done == 1, "it was run behind the back of who discarded it"),
        }
        waiting.await.unwrap();
        agent.dispose().await.unwrap();
    });
}
