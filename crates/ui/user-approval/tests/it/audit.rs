//! The pair of events that every ask leaves.

use std::sync::{Arc, Mutex};

use context::Boxed;
use futures_util::FutureExt as _;
use session::*;
use tokio::sync::oneshot;
use user_approval::*;

use crate::support::*;

#[tokio::test]
async fn asks_that_overlap_keep_their_pairs_apart() {
    let stage = Stage::new().await;
    let session = stage.session();
    let (first, second) = (oneshot::channel(), oneshot::channel());
    let waiting = Mutex::new(vec![second.1, first.1]);
    stage.answerer("slow", move |_| {
        let answer = waiting.lock().unwrap().pop().unwrap();
        async { answer.await.ok() }
    });
    let [mut one, mut two] = [(); 2].map(|()| Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled())));
    assert!((&mut one).now_or_never().is_none() && (&mut two).now_or_never().is_none());
    second.0.send(Answer::Reject).unwrap();
    assert_eq!(in_time(two).await.unwrap(), Outcome::Rejected);
    first.0.send(Answer::AllowOnce).unwrap();
    assert_eq!(in_time(one).await.unwrap(), Outcome::AllowedOnce);
    let want = ["1: asked 1", "2: asked 2", "3: decided 2 Rejected", "4: decided 1 AllowedOnce"];
    assert_eq!(audit(&session), want);
    stage.close().await;
}

#[tokio::test]
async fn only_an_open_turn_may_ask() {
    let stage = Stage::new().await;
    stage.generous();
    let check = async |session: &Session| {
        let length = session.len();
        let error = stage.request(session).await.unwrap_err();
        assert!(matches!(error, AskError::NoTurn));
        assert_eq!(error.to_string(), "no turn is open: only an agent at work may ask");
        assert_eq!(session.len(), length, "nothing is written");
    };
    let session = stage.sessions.create("/home/me/project");
    check(&session).await;
    session.append(TurnStart { turn: 1 }).unwrap();
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce);
    // A process that died in the middle of the turn.
    check(&reopened(&session).unwrap()).await;
    end_turn(&session);
    check(&session).await;
    session.append(TurnStart { turn: 2 }).unwrap();
    assert_eq!(stage.request(&session).await.unwrap(), Outcome::AllowedOnce);
    stage.consulted.take();
    // The parent's turn is not the child's, and what a fork copied is history.
    check(&child(&session, Seed::Fresh)).await;
    check(&child(&session, Seed::ClosedTurns)).await;
    assert_eq!(stage.consulted.take(), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn an_ask_that_cannot_be_audited_permits_nothing() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    session.close();
    let error = stage.request(&session).await.unwrap_err();
    assert!(matches!(error, AskError::Audit(Closed)));
    assert_eq!(error.to_string(), "the ask could not be audited: the session is closed");
    assert_eq!(stage.consulted.take(), [""; 0]);
    stage.close().await;

    // Closed while somebody thinks about it.
    let stage = Stage::new().await;
    let session = stage.session();
    let closes = session.clone();
    stage.answerer("late", move |_| {
        closes.close();
        async { Some(Answer::AllowOnce) }
    });
    assert!(matches!(stage.request(&session).await, Err(AskError::Audit(Closed))));
    assert_eq!(audit(&session), ["1: asked 1"]);
    stage.close().await;
}

#[tokio::test]
async fn an_ask_that_is_dropped_was_withdrawn() {
    let stage = Stage::new().await;
    let session = stage.session();
    stage.answerer("slow", async |_| std::future::pending().await);
    let mut asking = Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled()));
    assert!((&mut asking).now_or_never().is_none());
    assert_eq!(audit(&session), ["1: asked 1"]);
    drop(asking);
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Cancelled"]);
    stage.close().await;
}

/// Notes up to where it was asked to flush.
struct Disk {
    flushed: Arc<Mutex<Vec<u64>>>,
    broken: bool,
}

impl Backing for Disk {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.flushed.lock().unwrap().push(log.len());
        let error = FlushError { message: "no space left on device".into(), full: true };
        let result = if self.broken { Err(error) } else { Ok(()) };
        Box::pin(async { result })
    }

    fn close(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        unreachable!("the approval service closes nothing")
    }

    fn discard(&self) -> Boxed<'static, ()> {
        unreachable!("the approval service discards nothing")
    }
}

#[tokio::test]
async fn a_permission_is_durable_before_it_is_given() {
    for broken in [false, true] {
        let stage = Stage::new().await;
        stage.generous();
        let session = stage.session();
        let flushed: Arc<Mutex<Vec<u64>>> = Arc::default();
        session.attach(Arc::new(Disk { flushed: flushed.clone(), broken })).unwrap();
        let got = stage.request(&session).await;
        assert_eq!(*flushed.lock().unwrap(), [3], "the pair is in what is flushed");
        match got {
            Ok(outcome) => assert!(!broken && outcome == Outcome::AllowedOnce),
            Err(error) => {
                assert!(broken && matches!(error, AskError::Flush(_)));
                let want = "the answer could not be audited: the session's log could not be written: no space left on \
                            device";
                assert_eq!(error.to_string(), want);
            }
        }
        // Refusing needs no disk.
        session.append(PolicySet::by_user(Policy::Never)).unwrap();
        assert_eq!(stage.request(&session).await.unwrap(), Outcome::Rejected);
        assert_eq!(flushed.lock().unwrap().len(), 1);
        stage.close().await;
    }
}

/// Also when the process dies while somebody thinks.
#[tokio::test]
async fn a_question_is_durable_while_it_is_open() {
    for broken in [false, true] {
        let stage = Stage::new().await;
        let session = stage.session();
        let flushed: Arc<Mutex<Vec<u64>>> = Arc::default();
        session.attach(Arc::new(Disk { flushed: flushed.clone(), broken })).unwrap();
        stage.answerer("slow", async |_| std::future::pending().await);
        let mut asking = Box::pin(stage.approval.request(&session, ask(), stage.app.cancelled()));
        assert!((&mut asking).now_or_never().is_none());
        assert_eq!(*flushed.lock().unwrap(), [2], "the question is in what is flushed");
        assert!(asking.now_or_never().is_none(), "it goes on to wait");
        assert_eq!(*flushed.lock().unwrap(), [2]);
        stage.close().await;
    }
}
