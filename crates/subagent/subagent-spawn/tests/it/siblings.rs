//! Children of one response run side by side.

use session::{ToolCalled, ToolReturned};
use tools::PARALLEL_LIMIT;

use crate::doubles::Gate;
use crate::world::*;

/// Calls for so many children in one response; each waits at the gate of its number and then says it.
fn siblings(count: usize) -> String {
    let spawn = |n| format!(r#"spawn c{n} {{ call gate {{"name":"{n}"}}; say I am {n} }}"#);
    (1..=count).map(spawn).collect::<Vec<_>>().join(" & ")
}

// D-31
#[tokio::test]
async fn two_children_of_one_response_meet_and_answer_in_the_models_order() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let turn = parent.followup(siblings(2)).unwrap();
        gate.arrivals(2).await;
        assert_eq!(gate.most(), 2, "both are at work");
        // The second one is through before the first may go on.
        gate.open("2");
        world.news.until(|all| all.iter().any(|told| matches!(told, Told::Ended { .. }))).await;
        gate.open("1");
        turn.outcome().await;
        let log = world.log(parent.id());
        assert_eq!(answers(&log), ["I am 1", "I am 2"]);
        let order: Vec<_> = all::<ToolCalled>(&log).iter().map(|call| call.call_id.clone()).collect();
        let answered: Vec<_> = all::<ToolReturned>(&log).iter().map(|result| result.call_id.clone()).collect();
        assert_eq!(answered, order);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-31
#[tokio::test]
async fn no_more_than_the_limit_run_at_once_and_the_order_holds() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let count = PARALLEL_LIMIT + 1;
        let turn = parent.followup(siblings(count)).unwrap();
        gate.arrivals(PARALLEL_LIMIT).await;
        // Long enough for one more, were there no limit: another agent's child comes and goes.
        let elsewhere = world.parent().await;
        tell(&elsewhere, "spawn other { list; list; list; say done }").await;
        assert_eq!((gate.names().len(), gate.most()), (PARALLEL_LIMIT, PARALLEL_LIMIT));
        // Those that may go on end in the order opposite to the model's. The last was not begun until one had ended.
        let ends = |all: &[Told]| all.iter().filter(|told| matches!(told, Told::Ended { .. })).count();
        for (ended, n) in (1..=PARALLEL_LIMIT).rev().enumerate() {
            gate.open(&n.to_string());
            // The one of the other agent has ended as well.
            world.news.until(|all| ends(all) == ended + 2).await;
        }
        gate.open(&count.to_string());
        turn.outcome().await;
        let want: Vec<_> = (1..=count).map(|n| format!("I am {n}")).collect();
        assert_eq!(answers(&world.log(parent.id())), want);
        assert_eq!((gate.names().len(), gate.most()), (count, PARALLEL_LIMIT));
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-31, D-25
#[tokio::test]
async fn cancelling_the_parents_turn_ends_all_of_them() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        let turn = parent.followup(siblings(3)).unwrap();
        gate.arrivals(3).await;
        parent.cancel("enough", agent::Inbox::Keep);
        let outcome = turn.outcome().await;
        assert_eq!(outcome.reason, session::TurnReason::Aborted { cause: Some("enough".into()) });
        assert_eq!(answers(&world.log(parent.id())), vec!["the child was cancelled"; 3]);
        assert_eq!(world.live(), [parent.id()]);
        world.news.assert_paired();
        assert_eq!(said(&tell(&parent, "say on").await), "on");
        world.app.close().await.unwrap();
    })
    .await;
}
