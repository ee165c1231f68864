//! Answerers that come and go while questions are open.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use context::Registration;
use futures_util::FutureExt as _;
use user_approval::*;

use crate::support::*;

#[tokio::test]
async fn an_answerer_that_left_is_not_asked() {
    let stage = Stage::new().await;
    let session = stage.session();
    let yes = stage.fake("yes", |_| true, async |_| Some(Answer::AllowOnce));
    let kept = Arc::downgrade(&yes);
    let answering = stage.approval.answer_with(yes.clone());
    let twice = stage.approval.answer_with(yes);
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce);
    drop(twice);
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce, "it is still there once");
    drop(answering);
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::Unavailable, "what was allowed was allowed once");
    assert!(kept.upgrade().is_none(), "nothing is kept of it");
    stage.close().await;
}

#[tokio::test]
async fn one_that_leaves_while_it_is_asked_has_not_answered() {
    for (behind, outcome) in [(None, Outcome::Unavailable), (Some(Answer::Reject), Outcome::Rejected)] {
        for answers_late in [false, true] {
            let stage = Stage::new().await;
            let session = stage.session();
            let (says, slow) = stage.slow("slow");
            let answering = stage.approval.answer_with(slow);
            stage.answerer("behind", move |_| async move { behind });
            let mut asking = Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled()));
            assert!((&mut asking).now_or_never().is_none());
            assert_eq!(stage.consulted.take(), ["slow owns?", "slow asked"]);
            drop(answering);
            if answers_late {
                says.send(Answer::AllowOnce).unwrap();
            }
            assert_eq!(in_time(asking).await.unwrap(), outcome, "{answers_late}");
            assert_eq!(audit(&session), ["1: asked 1".to_owned(), format!("2: decided 1 {outcome:?}")]);
            assert_eq!(stage.consulted.take()[..2], ["behind owns?", "behind asked"], "the next is asked");
            stage.close().await;
        }
    }
}

#[tokio::test]
async fn one_that_leaves_before_its_turn_comes_is_not_consulted() {
    let stage = Stage::new().await;
    let session = stage.session();
    let leaving: Arc<Mutex<Option<Registration>>> = Arc::default();
    let leaves = leaving.clone();
    stage.answerer("first", move |_| {
        drop(leaves.lock().unwrap().take());
        async { None }
    });
    let second = stage.fake("second", |_| true, async |_| Some(Answer::AllowOnce));
    *leaving.lock().unwrap() = Some(stage.approval.answer_with(second));
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::Unavailable);
    assert_eq!(stage.consulted.take(), ["first owns?", "first asked"]);
    stage.close().await;
}

#[tokio::test]
async fn one_that_gave_the_agent_away_before_it_answered_has_not_answered() {
    for keeps in [true, false] {
        let stage = Stage::new().await;
        let session = stage.session();
        let owner = Arc::new(AtomicBool::new(true));
        let (owns, gives) = (owner.clone(), owner);
        stage.answerer_for(
            "owner",
            move |_| owns.load(Ordering::SeqCst),
            move |_| {
                gives.store(keeps, Ordering::SeqCst);
                async { Some(Answer::AllowOnce) }
            },
        );
        let outcome = if keeps { Outcome::AllowedOnce } else { Outcome::Unavailable };
        assert_eq!(stage.request(&session).await.unwrap(), outcome);
        stage.close().await;
    }
}

#[tokio::test]
async fn one_that_comes_while_another_is_asked_is_asked_next_time() {
    let stage = Stage::new().await;
    let session = stage.session();
    let (says, slow) = stage.slow("slow");
    let answering = stage.approval.answer_with(slow);
    let mut asking = Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled()));
    assert!((&mut asking).now_or_never().is_none());
    stage.generous();
    drop(says);
    assert_eq!(in_time(asking).await.unwrap(), Outcome::Unavailable, "who was there when it was asked decides");
    drop(answering);
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce);
    stage.close().await;
}
