//! What a whole tree may use, and that nothing goes past it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{AgentPublished, AgentRef, AgentSetup};
use async_trait::async_trait;
use bundle::Policies;
use context::{BoxError, Ctx, Scope};
use llm::Usage;
use session::TurnReason;
use subagent::{
    Budget, BudgetReached, BudgetSpent, Limits, Request, Run, RunResult, Start, StartError, Started, SubagentProvider,
    Subagents,
};

use crate::world::*;

async fn limited(limits: Limits) -> World {
    World::with(Policies { limits, ..Policies::default() }, |plugins| plugins, |_| {}).await
}

async fn start(world: &World, parent: &AgentRef, provider: &str, script: &str) -> Result<Run, BudgetSpent> {
    match world.subagents.start(parent, provider, Request::new(script)).await {
        Ok(run) => Ok(run),
        Err(StartError::Budget(spent)) => Err(spent),
        Err(other) => panic!("{other}"),
    }
}

#[track_caller]
fn spent(result: Result<Run, BudgetSpent>, budget: Budget, used: u64, limit: u64) {
    assert_eq!(result.unwrap_err(), BudgetSpent { budget, used, limit });
}

// D-52
#[tokio::test]
async fn children_alive_at_once_are_counted_over_the_whole_tree() {
    within(async {
        let world = limited(Limits { max_children: Some(2), ..Limits::default() }).await;
        let (parent, other) = (world.parent().await, world.parent().await);
        let one = start(&world, &parent, "spawn", "hang").await.unwrap();
        let two = start(&world, &world.child(&one), "fork", "say done").await.unwrap();
        two.result().await;
        let before = (world.news.all(), world.names());
        for below in [parent.handle().clone(), world.child(&one), world.child(&two)] {
            spent(start(&world, &below, "spawn", "hang").await, Budget::Children, 2, 2);
        }
        let refused = world.subagents.start(&parent, "fork", Request::new("hang")).await.unwrap_err().to_string();
        assert_eq!(refused, "the budget of 2 children at once for this tree of agents is used up: 2 used");
        assert_eq!((world.news.all(), world.names()), before, "nothing existed");
        let elsewhere = start(&world, &other, "spawn", "hang").await.expect("another tree has a budget of its own");
        two.dispose().await.unwrap();
        let three = start(&world, &parent, "fork", "hang").await.expect("one that is disposed makes room");
        spent(start(&world, &parent, "spawn", "hang").await, Budget::Children, 2, 2);
        drop((three, elsewhere));
        one.dispose().await.unwrap();
        world.app.close().await.unwrap();
    })
    .await;
}

struct Refusing(Mutex<bool>);

#[async_trait]
impl AgentSetup for Refusing {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        match agent.session().header().lineage().is_some() && *self.0.lock().unwrap() {
            true => Err("not today".into()),
            false => Ok(()),
        }
    }
}

// D-52
#[tokio::test]
async fn children_in_total_are_those_that_were_published() {
    within(async {
        let world = limited(Limits { max_children_total: Some(3), ..Limits::default() }).await;
        let refusing = Arc::new(Refusing(Mutex::new(true)));
        world.app.register::<dyn AgentSetup>("refusing", refusing.clone()).unwrap();
        let parent = world.parent().await;
        for _ in 0..5 {
            let refused = world.subagents.start(&parent, "spawn", Request::new("hang")).await;
            assert!(matches!(refused, Err(StartError::Create(_))));
        }
        *refusing.0.lock().unwrap() = false;
        for provider in ["spawn", "fork", "spawn"] {
            let run = start(&world, &parent, provider, "say done").await.expect("what never was is not counted");
            run.result().await;
            run.dispose().await.unwrap();
        }
        spent(start(&world, &parent, "fork", "say done").await, Budget::ChildrenTotal, 3, 3);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-52
#[tokio::test]
async fn siblings_that_start_together_do_not_pass_together() {
    within(async {
        let world = limited(Limits { max_children: Some(3), ..Limits::default() }).await;
        let parent = world.parent().await;
        let starts = (0..20).map(|_| start(&world, &parent, "spawn", "hang"));
        let started = futures_util::future::join_all(starts).await;
        assert_eq!(started.iter().filter(|started| started.is_ok()).count(), 3);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-52
#[tokio::test]
async fn a_budget_of_nothing_refuses_at_once() {
    within(async {
        let none = Limits::default();
        let table = [
            (Limits { max_children: Some(0), ..none }, Budget::Children),
            (Limits { max_children_total: Some(0), ..none }, Budget::ChildrenTotal),
            (Limits { tokens: Some(0), ..none }, Budget::Tokens),
            (Limits { time: Some(Duration::ZERO), ..none }, Budget::Time),
        ];
        for (limits, budget) in table {
            let world = limited(limits).await;
            let parent = world.parent().await;
            let names = world.names();
            spent(start(&world, &parent, "spawn", "say done").await, budget, 0, 0);
            assert_eq!(world.names(), names);
            world.app.close().await.unwrap();
        }
    })
    .await;
}

fn reached(world: &World) -> Arc<Mutex<Vec<BudgetReached>>> {
    let reached = Arc::new(Mutex::new(Vec::new()));
    let to = reached.clone();
    world.app.own(world.app.realm().on(move |told: &BudgetReached| to.lock().unwrap().push(*told))).unwrap();
    reached
}

// D-52
#[tokio::test]
async fn a_tree_that_has_spent_its_tokens_begins_no_step_and_no_child() {
    within(async {
        let world = limited(Limits { tokens: Some(60), ..Limits::default() }).await;
        let reached = reached(&world);
        let parent = world.parent().await;
        let long = "say one two three four five six seven eight nine ten".repeat(8);
        let outcome = tell(&parent, &format!("spawn x {{ {long} }}; write a.txt x; say never")).await;
        let TurnReason::Aborted { cause: Some(cause) } = outcome.reason else { panic!("{:?}", outcome.reason) };
        assert!(cause.starts_with("the budget of 60 tokens for this tree of agents is used up: "), "{cause}");
        let told = reached.lock().unwrap().clone();
        assert_eq!(
            told.iter().map(|told| (told.root, told.spent.budget)).collect::<Vec<_>>(),
            [(parent.id(), Budget::Tokens)]
        );
        assert!(matches!(start(&world, &parent, "spawn", "say x").await, Err(spent) if spent.budget == Budget::Tokens));
        assert!(matches!(tell(&parent, "say again").await.reason, TurnReason::Aborted { .. }), "it stays spent");
        assert_eq!(reached.lock().unwrap().len(), 1, "told once");
        world.app.close().await.unwrap();
    })
    .await;
}

/// Its children have no log here, and say what they cost.
struct Costly(u64);

#[async_trait]
impl SubagentProvider for Costly {
    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, _: Start) -> Result<Started, StartError> {
        let usage = Usage { output_tokens: self.0, ..Usage::default() };
        Ok(Started::elsewhere(std::future::ready(RunResult { usage, ..RunResult::completed(Vec::new()) })))
    }
}

// D-52
#[tokio::test]
async fn tokens_of_children_without_a_log_here_count_too() {
    within(async {
        let world = limited(Limits { tokens: Some(60), ..Limits::default() }).await;
        let _costly = world.subagents.register("costly", Arc::new(Costly(30))).unwrap();
        let parent = world.parent().await;
        for _ in 0..2 {
            let run = start(&world, &parent, "costly", "go").await.expect("there are tokens left");
            run.result().await;
            run.dispose().await.unwrap();
        }
        spent(start(&world, &parent, "costly", "go").await, Budget::Tokens, 60, 60);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-52
#[tokio::test]
async fn a_tree_whose_time_is_over_is_stopped_wherever_it_waits() {
    within(async {
        let world = limited(Limits { time: Some(Duration::from_millis(300)), ..Limits::default() }).await;
        let reached = reached(&world);
        let parent = world.parent().await;
        let outcome = tell(&parent, "spawn x { hang }; say never").await;
        let TurnReason::Aborted { cause: Some(cause) } = outcome.reason else { panic!("{:?}", outcome.reason) };
        assert!(cause.contains("seconds for this tree of agents is used up"), "{cause}");
        assert_eq!(reached.lock().unwrap().len(), 1);
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-52
#[tokio::test]
async fn the_time_of_a_tree_runs_whoever_was_told_of_its_top_first() {
    within(async {
        let limits = Limits { time: Some(Duration::from_millis(300)), ..Limits::default() };
        let started = Arc::new(Mutex::new(Vec::new()));
        let starting = started.clone();
        let first = |app: &Scope| {
            let ctx = Ctx::clone(app);
            let listener = app.realm().on(move |AgentPublished(agent): &AgentPublished| {
                if agent.session().header().lineage().is_none() {
                    let subagents = ctx.get::<Subagents>().unwrap();
                    starting.lock().unwrap().push(subagents.start(agent, "spawn", Request::new("hang")));
                }
            });
            app.own(listener).unwrap();
        };
        let world = World::with(Policies { limits, ..Policies::default() }, |plugins| plugins, first).await;
        let reached = reached(&world);
        let parent = world.parent().await;
        assert_eq!(started.lock().unwrap().len(), 1);
        assert!(matches!(tell(&parent, "hang").await.reason, TurnReason::Aborted { .. }));
        let told: Vec<_> = reached.lock().unwrap().iter().map(|told| (told.root, told.spent.budget)).collect();
        assert_eq!(told, [(parent.id(), Budget::Time)]);
        started.lock().unwrap().clear();
        world.app.close().await.unwrap();
    })
    .await;
}
