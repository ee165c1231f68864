//! What changes between the question and its answer.

use std::sync::Arc;
use std::time::Duration;

use context::Boxed;
use futures_util::FutureExt as _;
use session::*;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use user_approval::*;

use crate::support::*;

/// Asks, lets `meanwhile` happen, and then has somebody allow it.
async fn check(meanwhile: impl FnOnce(&Session), outcome: Outcome) {
    let stage = Stage::new().await;
    let session = stage.session();
    let (says, slow) = stage.slow("slow");
    stage.app.own(stage.approval.answer_with(slow)).unwrap();
    let mut asking = Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled()));
    assert!((&mut asking).now_or_never().is_none());
    meanwhile(&session);
    let decided = format!("{}: decided 1 {outcome:?}", session.len());
    says.send(Answer::AllowOnce).unwrap();
    assert_eq!(in_time(asking).await.unwrap(), outcome);
    assert_eq!(audit(&session), ["1: asked 1".to_owned(), decided]);
    stage.close().await;
}

#[tokio::test]
async fn a_policy_that_became_never_holds_for_questions_that_are_open() {
    check(|session| _ = session.append(PolicySet::by_user(Policy::Never)).unwrap(), Outcome::Rejected).await;
    check(|session| _ = session.append(PolicySet::by_user(Policy::Ask)).unwrap(), Outcome::AllowedOnce).await;
}

#[tokio::test]
async fn an_answer_is_for_the_turn_that_asked() {
    check(end_turn, Outcome::Cancelled).await;
    let next_turn = |session: &Session| {
        end_turn(session);
        session.append(TurnStart { turn: 2 }).unwrap();
    };
    check(next_turn, Outcome::Cancelled).await;
    check(|session| _ = session.append(StepStart { turn: 1, step: 2 }).unwrap(), Outcome::AllowedOnce).await;
}

/// Every ask has an id of its own: in a session that asks twice at once, in a fork of it, and after a restart.
#[tokio::test]
async fn a_request_id_is_used_once() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    let (one, two) = futures_util::future::join(stage.request(&session), stage.request(&session)).await;
    assert_eq!((one.unwrap(), two.unwrap()), (Outcome::AllowedOnce, Outcome::AllowedOnce));
    end_turn(&session);
    let again = reopened(&session).unwrap();
    let fork = child(&session, Seed::ClosedTurns);
    for session in [again, fork] {
        session.append(TurnStart { turn: 2 }).unwrap();
        stage.request(&session).await.unwrap();
        let log = session.snapshot();
        let mut ids: Vec<u64> = Vec::new();
        for event in log.events().iter() {
            if let Some(asked) = event.get::<ApprovalAsked>() {
                assert_eq!(asked.request_id.0, event.seq());
                ids.push(asked.request_id.0);
            }
        }
        assert_eq!(ids.len(), 3);
        ids.dedup();
        assert_eq!(ids.len(), 3, "{ids:?}");
    }
    stage.close().await;
}

/// A disk that never answers.
struct Stuck;

impl Backing for Stuck {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        Box::pin(std::future::pending())
    }

    fn close(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        unreachable!("the approval service closes nothing")
    }

    fn discard(&self) -> Boxed<'static, ()> {
        unreachable!("the approval service discards nothing")
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_settles_an_ask_whose_answer_is_not_durable_yet() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    session.attach(Arc::new(Stuck)).unwrap();
    let cancelled = CancellationToken::new();
    let cancels = cancelled.clone();
    let person = async move {
        sleep(Duration::from_secs(5)).await;
        cancels.cancel();
    };
    stage.app.spawn("person", context::Stop::Join, person).unwrap();
    let began = Instant::now();
    let outcome = in_time(stage.approval.request(&session, ask(), &cancelled)).await.unwrap();
    assert_eq!((outcome, began.elapsed()), (Outcome::Cancelled, Duration::from_secs(5)));
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 AllowedOnce"], "that is what was answered");
    stage.close().await;
}
