//! Where a session is kept: what a store is told, and when.

use std::sync::{Arc, Mutex};

use context::Boxed;
use futures_util::FutureExt as _;
use session::*;

use crate::support::*;

/// Notes what it is asked, with the length of the log.
#[derive(Default)]
struct Noting {
    asked: Mutex<Vec<(&'static str, u64)>>,
    broken: bool,
}

impl Noting {
    fn note(&self, what: &'static str, log: &Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.asked.lock().unwrap().push((what, log.len()));
        let error = FlushError { message: "no space left".into(), full: true };
        let result = if self.broken { Err(error) } else { Ok(()) };
        Box::pin(async { result })
    }

    fn asked(&self) -> Vec<(&'static str, u64)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Backing for Noting {
    fn hint(&self, log: &Snapshot) {
        drop(self.note("hint", log));
    }

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.note("flush", &log)
    }

    fn close(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.note("close", &log)
    }

    fn discard(&self) -> Boxed<'static, ()> {
        self.asked.lock().unwrap().push(("discard", 0));
        Box::pin(async {})
    }
}

#[test]
fn a_session_that_is_kept_nowhere_is_flushed_at_once() {
    let session = session();
    session.append(Note { n: 1 }).unwrap();
    session.flush().now_or_never().expect("at once").unwrap();
    session.release().now_or_never().expect("at once").unwrap();
    assert_eq!(session.append(Note { n: 2 }), Err(Closed));
}

#[tokio::test]
async fn a_store_is_handed_the_log_as_it_is() {
    let (session, kept) = (session(), Arc::new(Noting::default()));
    session.append(Note { n: 1 }).unwrap();
    session.attach(kept.clone()).unwrap();
    session.flush().await.unwrap();
    session.append(Note { n: 2 }).unwrap();
    session.flush().await.unwrap();
    session.release().await.unwrap();
    assert_eq!(kept.asked(), [("flush", 1), ("flush", 2), ("close", 2)]);
    assert_eq!(session.append(Note { n: 3 }), Err(Closed));
    session.flush().await.unwrap();
    assert_eq!(kept.asked().last(), Some(&("flush", 2)), "what was appended before the end can still be flushed");
}

#[tokio::test]
async fn a_session_has_one_backing() {
    let session = session();
    let (one, other) = (Arc::new(Noting::default()), Arc::new(Noting::default()));
    session.attach(one.clone()).unwrap();
    assert_eq!(session.attach(other.clone()), Err(AlreadyBacked));
    session.flush().await.unwrap();
    assert_eq!((one.asked().len(), other.asked().len()), (1, 0));
}

/// D-11, as far as the session goes: what was never announced is closed, and its backing told to leave nothing.
#[tokio::test]
async fn a_discarded_session_takes_no_more() {
    let (session, kept) = (session(), Arc::new(Noting::default()));
    assert!(!session.is_backed());
    session.attach(kept.clone()).unwrap();
    assert!(session.is_backed());
    session.append(Note { n: 1 }).unwrap();
    session.discard().await;
    assert_eq!((kept.asked(), session.append(Note { n: 2 })), (vec![("discard", 0)], Err(Closed)));
    let nowhere = spawn(&session);
    nowhere.discard().await;
    assert_eq!(nowhere.append(Note { n: 1 }), Err(Closed));
}

#[tokio::test]
async fn a_failed_write_is_told_and_nothing_is_lost() {
    let session = session();
    session.attach(Arc::new(Noting { broken: true, ..Noting::default() })).unwrap();
    session.append(Note { n: 1 }).unwrap();
    let error = session.flush().await.unwrap_err();
    assert!(error.full);
    assert_eq!(error.to_string(), "the session's log could not be written: no space left");
    assert_eq!(session.append(Note { n: 2 }).unwrap(), 1, "memory is not the disk");
    assert!(session.release().await.is_err());
}

/// A store hears of a pile before it grows without end, and an observer is told no less for it.
#[test]
fn a_store_is_told_when_much_is_unwritten() {
    let (session, kept) = (session(), Arc::new(Noting::default()));
    session.append(Note { n: 0 }).unwrap();
    session.attach(kept.clone()).unwrap();
    let told = Arc::new(Mutex::new(0));
    let count = told.clone();
    let _counting = session.observe(0, move |_| *count.lock().unwrap() += 1);
    for n in 1..1_100 {
        session.append(Note { n }).unwrap();
    }
    assert_eq!(kept.asked(), [("hint", 512), ("hint", 1_024)]);
    assert_eq!(*told.lock().unwrap(), 1_100);
}

#[tokio::test]
async fn last_words_are_heard_until_it_is_let_go_of() {
    let (session, kept) = (session(), Arc::new(Noting::default()));
    session.attach(kept.clone()).unwrap();
    let told = Arc::new(Mutex::new(0));
    let count = told.clone();
    let _counting = session.observe(0, move |_| *count.lock().unwrap() += 1);
    assert_eq!(session.append_last_words(Note { n: 1 }), Ok(0), "nobody has to close it first");
    session.close();
    assert_eq!(session.append(Note { n: 2 }), Err(Closed));
    assert_eq!(session.append_last_words(Note { n: 3 }), Ok(1));
    session.close();
    assert_eq!(session.append_last_words(Note { n: 4 }), Ok(2));
    session.release().await.unwrap();
    session.close();
    assert_eq!(session.append_last_words(Note { n: 5 }), Err(Closed));
    assert_eq!((kept.asked(), *told.lock().unwrap()), (vec![("close", 3)], 3));
    let nowhere = crate::support::session();
    nowhere.discard().await;
    assert_eq!(nowhere.append_last_words(Note { n: 1 }), Err(Closed));
}

#[test]
fn a_closed_session_can_be_read_and_forked() {
    let session = session();
    turn(&session, 1);
    session.close();
    session.close();
    let Err(closed) = session.append(Note { n: 1 }) else { panic!("it is closed") };
    assert_eq!((closed, closed.to_string().as_str()), (Closed, "the session is closed"));
    assert_eq!(session.append_with(|_| -> Note { unreachable!("closed") }), Err(Closed));
    assert_eq!((session.len(), shown(&session).len()), (3, 1));
    let child = fork(&session);
    assert_eq!(child.header().seed_length(), 3);
    turn(&child, 2);
    turn(&reopened(&session), 2);
}
