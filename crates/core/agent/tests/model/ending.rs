use agent::{Inbox, SendError};
use session::Delivery::{Followup, Inject, Steer};
use session::TurnReason;
use shuttle::future::spawn;

use crate::stage::{Stage, check, fates, pause, send};

/// What an agent accepted before it ended was read, or waits in the log; either way its sender is told. What comes later
/// is refused and leaves nothing.
#[test]
fn an_agent_that_ends_loses_no_message_and_settles_every_receipt() {
    check(|| async {
        let stage = Stage::new();
        let agent = std::sync::Arc::new(stage.agent().await);
        let senders = [[Followup, Steer], [Inject, Followup]].map(|deliveries| {
            let agent = agent.handle().clone();
            spawn(async move {
                let mut receipts = Vec::new();
                for delivery in deliveries {
                    match send(&agent, delivery) {
                        Ok(receipt) => receipts.push(receipt),
                        Err(SendError::Gone) => {}
                        Err(other) => panic!("{other}"),
                    }
                    pause().await;
                }
                // To the end, whatever happens to the agent meanwhile.
                let mut told = Vec::new();
                for receipt in receipts {
                    told.push((receipt.id(), receipt.outcome().await));
                }
                agent.when_idle().await;
                told
            })
        });
        let cancelling = spawn({
            let agent = agent.handle().clone();
            async move { agent.cancel("enough", Inbox::Keep) }
        });
        pause().await;
        let disposing = [0, 1].map(|n| {
            let agent = agent.clone();
            spawn(async move {
                match n {
                    0 => agent.dispose().await.unwrap(),
                    _ => agent.dispose_because("the end").await.unwrap(),
                }
                assert_eq!(agent.followup("late").unwrap_err(), SendError::Gone);
                assert!(agent.is_idle());
                agent.session().len()
            })
        });
        for disposer in disposing {
            let length = disposer.await.unwrap();
            assert_eq!(length, stage.session.len(), "nothing is written to a log that was let go");
        }
        cancelling.await.unwrap();
        let fates = fates(&stage.session);
        let pending: Vec<_> = stage.session.pending().iter().map(|waiting| waiting.id).collect();
        let mut accepted = 0;
        for sender in senders {
            for (id, outcome) in sender.await.unwrap() {
                accepted += 1;
                assert_eq!((fates[&id].claimed, fates[&id].discarded), (usize::from(!pending.contains(&id)), 0));
                let expected = match stage.turns.of(id) {
                    Some(turn) => turn,
                    None => (0, TurnReason::Aborted { cause: Some("the agent ended".into()) }),
                };
                assert_eq!((outcome.turn, outcome.reason), expected);
                assert_eq!(expected.0 > 0, fates[&id].claimed == 1, "what was claimed was in a turn");
            }
        }
        assert_eq!(accepted, fates.len(), "what is refused leaves nothing");
        stage.app.close().await.unwrap();
    });
}
