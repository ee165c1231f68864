//! A turn that is cancelled while a question is open.

use std::sync::Mutex;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use user_approval::*;

use crate::support::*;

/// Notes that it was dropped.
struct OnDrop(Trace);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note("question dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_settles_the_ask_at_once() {
    let stage = Stage::new().await;
    let session = stage.session();
    let trace = stage.consulted.clone();
    stage.answerer("slow", move |_| {
        let dropped = OnDrop(trace.clone());
        async move {
            let _dropped = dropped;
            sleep(Duration::from_secs(30)).await;
            Some(Answer::AllowOnce)
        }
    });
    let cancelled = CancellationToken::new();
    let cancels = cancelled.clone();
    stage
        .app
        .spawn("person", context::Stop::Join, async move {
            sleep(Duration::from_secs(5)).await;
            cancels.cancel();
        })
        .unwrap();
    let began = Instant::now();
    let outcome = in_time(stage.approval.request(&session, ask(), &cancelled)).await.unwrap();
    assert_eq!((outcome, began.elapsed()), (Outcome::Cancelled, Duration::from_secs(5)));
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Cancelled"]);
    assert_eq!(stage.consulted.take(), ["slow owns?", "slow asked", "question dropped"]);
    stage.close().await;
}

/// Both have happened by the time anyone looks: the cancel came first, so it counts.
#[tokio::test]
async fn an_answer_that_comes_after_the_cancel_is_nobodys() {
    let stage = Stage::new().await;
    let session = stage.session();
    let (answer, answered) = oneshot::channel();
    let answered = Mutex::new(Some(answered));
    stage.answerer("late", move |_| {
        let answered = answered.lock().unwrap().take().unwrap();
        async { answered.await.ok() }
    });
    let cancelled = CancellationToken::new();
    let mut asking = Box::pin(stage.approval.request(&session, ask(), &cancelled));
    assert!((&mut asking).now_or_never().is_none());
    cancelled.cancel();
    answer.send(Answer::AllowOnce).unwrap();
    assert_eq!(in_time(asking).await.unwrap(), Outcome::Cancelled);
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Cancelled"], "and nothing after that");
    stage.close().await;
}

#[tokio::test]
async fn nobody_is_asked_for_a_turn_that_is_cancelled_already() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let outcome = in_time(stage.approval.request(&session, ask(), &cancelled)).await.unwrap();
    assert_eq!(outcome, Outcome::Cancelled);
    assert_eq!(stage.consulted.take(), [""; 0]);
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Cancelled"]);
    session.append(PolicySet::by_user(Policy::Never)).unwrap();
    let outcome = in_time(stage.approval.request(&session, ask(), &cancelled)).await.unwrap();
    assert_eq!(outcome, Outcome::Rejected, "never is never");
    stage.close().await;
}
