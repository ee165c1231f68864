//! Waiting for an agent until its jobs are done too.

use std::sync::Arc;

use agent::TurnOutcome;
use jobs::{JobState, NewJob, Outcome, last_turn};
use llm::{Message, Usage};
use session::{AssistantMessage, TurnEnd, TurnReason, TurnStart};
use tokio::sync::Notify;

use crate::support::{Stage, in_time, notices};

fn job() -> NewJob {
    NewJob::new("bash", "make")
}

fn completed(last: &TurnEnd) -> bool {
    last.reason == TurnReason::Completed
}

#[tokio::test]
async fn jobs_and_the_turns_that_they_cause_are_waited_for() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    in_time(stage.jobs.finished(&agent, completed)).await;
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let work = |_| async move {
        gate.notified().await;
        Outcome::completed("done")
    };
    stage.jobs.start(&agent, job(), work).unwrap();
    let waiting = stage.jobs.finished(&agent, completed);
    let mut waiting = std::pin::pin!(in_time(waiting));
    tokio::select! {
        biased;
        () = &mut waiting => panic!("a job runs"),
        () = tokio::task::yield_now() => {}
    }
    go_on.notify_one();
    waiting.await;
    assert_eq!((stage.states(&agent), stage.read(&agent).len()), (vec![JobState::Completed], 1), "it has read of it");
    assert!(agent.is_idle() && notices(agent.session()).len() == 1);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_turn_after_which_it_is_not_to_go_on_ends_the_wait() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    let until_cancelled = |job: jobs::Working| async move {
        job.cancelled().cancelled().await;
        Outcome::failed("cancelled")
    };
    stage.jobs.start(&agent, job(), until_cancelled).unwrap();
    let closes = async {
        tokio::task::yield_now().await;
        agent.session().append(TurnEnd { turn: 1, reason: TurnReason::Interrupted }).unwrap();
    };
    in_time(async { tokio::join!(stage.jobs.finished(&agent, completed), closes) }).await;
    in_time(stage.jobs.finished(&agent, completed)).await;
    assert_eq!(stage.states(&agent), [JobState::Running]);
    in_time(stage.jobs.kill_all(&agent)).await;
    assert_eq!((stage.states(&agent), stage.jobs.running(&agent)), (vec![JobState::Killed], 0));
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_the_last_turn_came_to() {
    let stage = Stage::new().await;
    let session = stage.sessions.create("/home/me");
    let tokens = |n| Usage { output_tokens: n, ..Usage::default() };
    let first =
        TurnOutcome { usage: tokens(1), ..TurnOutcome::completed(1, Some(Arc::new(Message::assistant("one")))) };
    for (turn, text) in [(1, "one"), (2, "two"), (3, "")] {
        session.append(TurnStart { turn }).unwrap();
        let (message, usage) = (Arc::new(Message::assistant(text)), Some(tokens(10_u64.pow(turn - 1))));
        session.append(AssistantMessage { turn, step: 1, message, usage, interrupted: false }).unwrap();
        session.append(TurnEnd { turn, reason: TurnReason::Completed }).unwrap();
        let last = last_turn(&session, first.clone());
        let said = last.output.unwrap().text();
        let (want, used) = [("one", 1), ("two", 11), ("two", 111)][turn as usize - 1];
        assert_eq!((last.turn, &*said, last.usage), (turn, want, tokens(used)));
    }
    stage.app.close().await.unwrap();
}
