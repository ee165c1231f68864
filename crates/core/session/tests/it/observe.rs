//! Observers: every event, in order, once, and never inside another's telling.

use std::sync::mpsc::RecvTimeoutError::Disconnected;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, OnceLock};

use session::*;

use crate::support::*;

/// An observer that notes each seq it is told.
fn noting(to: &Sender<u64>) -> impl Fn(&Event) + Send + Sync + 'static {
    let to = Mutex::new(to.clone());
    move |event| {
        to.lock().unwrap().send(event.seq()).ok();
    }
}

#[test]
fn what_is_there_is_replayed_and_then_it_is_live() {
    let session = session();
    for n in 0..3 {
        session.append(Note { n }).unwrap();
    }
    let (told, seen) = channel();
    let (from_start, from_two, from_later) = (told.clone(), told.clone(), told);
    let _guards = [
        session.observe(0, move |event| from_start.send(("start", event.seq())).unwrap()),
        session.observe(2, move |event| from_two.send(("two", event.seq())).unwrap()),
        session.observe(4, move |event| from_later.send(("later", event.seq())).unwrap()),
    ];
    let replayed: Vec<_> = seen.try_iter().collect();
    assert_eq!(replayed, [("start", 0), ("start", 1), ("start", 2), ("two", 2)]);
    for n in 3..6 {
        session.append(Note { n }).unwrap();
    }
    let live: Vec<_> = seen.try_iter().collect();
    let all = ["start", "two", "later"];
    assert_eq!(live[..2], [("start", 3), ("two", 3)]);
    assert_eq!(live[2..], [4, 5].map(|seq| all.map(|who| (who, seq))).concat(), "in order of registration");
}

#[test]
fn what_an_observer_appends_is_told_afterwards() {
    let session = session();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (again, first, second) = (session.clone(), seen.clone(), seen.clone());
    let note = |seen: &Mutex<Vec<String>>, what: &str, seq| seen.lock().unwrap().push(format!("{what} {seq}"));
    let _first = session.observe(0, move |event| {
        note(&first, "in", event.seq());
        if event.get::<Note>().is_some_and(|note| note.n < 2) {
            assert_eq!(again.append(Note { n: event.seq() as u32 + 1 }).unwrap(), event.seq() + 1);
        }
        note(&first, "out", event.seq());
    });
    let _second = session.observe(0, move |event| note(&second, "other", event.seq()));
    assert_eq!(session.append(Note { n: 0 }), Ok(0));
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["in 0", "out 0", "other 0", "in 1", "out 1", "other 1", "in 2", "out 2", "other 2"]);
    assert_eq!(session.len(), 3);
}

#[test]
fn one_that_panics_starves_nobody_and_goes_on() {
    let session = session();
    let (told, seen) = channel();
    let broken = noting(&told);
    let _broken = session.observe(0, move |event| {
        broken(event);
        assert!(event.seq() != 1, "on purpose");
    });
    let _sound = session.observe(0, noting(&told));
    for n in 0..3 {
        assert_eq!(session.append(Note { n }).unwrap(), u64::from(n), "the append knows nothing of it");
    }
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
}

#[test]
fn one_that_was_removed_is_told_no_more() {
    let session = session();
    let (told, seen) = channel();
    let guard = session.observe(0, noting(&told));
    let other = session.observe(0, noting(&told));
    session.append(Note { n: 0 }).unwrap();
    drop(guard);
    session.append(Note { n: 1 }).unwrap();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [0, 0, 1]);
    drop(other);
    session.append(Note { n: 2 }).unwrap();
    drop(told);
    assert_eq!(seen.recv_timeout(DEADLINE), Err(Disconnected), "nothing told, and both observers are dropped");
}

/// Whatever an observer does to its session, it is called outside the lock.
#[test]
fn an_observer_may_use_its_session() {
    within_deadline(|| {
        let session = session();
        let (told, seen) = channel();
        let slot: Arc<OnceLock<Mutex<Option<context::Registration>>>> = Arc::default();
        let (own, inner, late) = (slot.clone(), session.clone(), noting(&told));
        let late = Arc::new(late);
        let guard = session.observe(0, move |event| {
            assert_eq!(inner.snapshot().len(), inner.len());
            assert!(inner.latest::<Note>().is_some() && inner.messages().is_ok() && inner.pending().is_empty());
            let late = late.clone();
            std::mem::forget(inner.observe(event.seq(), move |event| late(event)));
            drop(own.get().and_then(|own| own.lock().unwrap().take()));
            inner.close();
        });
        slot.set(Mutex::new(Some(guard))).unwrap();
        session.append(Note { n: 0 }).unwrap();
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [0], "added while told of this very event");
        assert_eq!(session.append(Note { n: 1 }), Err(Closed));
    });
}

/// A session that nobody holds is gone, whoever still holds a registration.
#[test]
fn a_registration_does_not_keep_a_session() {
    let session = session();
    let (told, seen) = channel::<()>();
    let guard = session.observe(0, move |_| told.send(()).unwrap());
    drop(session);
    assert_eq!(seen.recv_timeout(DEADLINE), Err(Disconnected), "the observer went with the session");
    drop(guard);
}

/// Four threads append; observers that join at any time see every event from where they asked, in order and once.
#[test]
fn no_gap_and_no_repetition_among_threads() {
    const THREADS: u32 = 4;
    const EACH: u32 = 2_000;
    const ALL: u64 = (THREADS * EACH) as u64;
    within_deadline(|| {
        let session = session();
        let begin = Arc::new(Barrier::new(THREADS as usize + 1));
        let writers: Vec<_> = (0..THREADS)
            .map(|writer| {
                let (session, begin) = (session.clone(), begin.clone());
                std::thread::spawn(move || {
                    begin.wait();
                    (0..EACH).map(|n| session.append(Note { n: writer * EACH + n }).unwrap()).collect::<Vec<u64>>()
                })
            })
            .collect();
        begin.wait();
        let observers: Vec<_> = (0..20)
            .map(|late| {
                let from = if late % 2 == 0 { 0 } else { session.len() };
                let (told, seen) = channel();
                (from, session.observe(from, noting(&told)), seen)
            })
            .collect();
        let mut written: Vec<Vec<u64>> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        assert!(written.iter().all(|seqs| seqs.is_sorted()), "each thread's events in its order");
        let mut seqs = written.concat();
        seqs.sort_unstable();
        assert!(seqs.into_iter().eq(0..ALL), "seqs without a gap");
        let log = session.snapshot();
        for (writer, seqs) in written.iter_mut().enumerate() {
            let notes = seqs.iter().map(|seq| log.event(*seq).unwrap().get::<Note>().unwrap().n);
            assert!(notes.eq(writer as u32 * EACH..(writer as u32 + 1) * EACH));
        }
        assert!(log.events().iter().map(Event::seq).eq(0..ALL));
        for (from, _guard, seen) in observers {
            let told = if from < ALL { received(&seen, |seq| *seq == ALL - 1) } else { Vec::new() };
            assert!(told.iter().copied().eq(from..ALL), "from {from}: {} events", told.len());
            assert!(seen.try_recv().is_err(), "and nothing after the last");
        }
    });
}

#[test]
fn an_event_can_hold_its_own_seq() {
    within_deadline(|| {
        let session = session();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let seq = session.append_with(|seq| Note { n: seq as u32 }).unwrap();
                        assert_eq!(session.snapshot().event(seq).unwrap().get::<Note>().unwrap().n, seq as u32);
                    }
                });
            }
        });
        let log = session.snapshot();
        assert!(log.events().iter().map(|event| event.get::<Note>().unwrap().n).eq(0..2_000));
    });
}

#[test]
fn a_maker_that_panics_appends_nothing() {
    let session = session();
    let panicking = std::panic::AssertUnwindSafe(|| session.append_with(|_| -> Note { panic!("on purpose") }));
    assert!(std::panic::catch_unwind(panicking).is_err());
    assert_eq!((session.len(), session.append(Note { n: 1 })), (0, Ok(0)), "and the session is as good as before");
}

#[test]
fn one_that_stops_stops_alone() {
    let session = session();
    let ((told, heard), (told_too, heard_too)) = (channel(), channel());
    let (first, second) = (session.observe(0, noting(&told)), session.observe(0, noting(&told_too)));
    assert!(session.is_empty());
    session.append(TurnStart { turn: 1 }).unwrap();
    assert!(!session.is_empty());
    drop(second);
    session.append(TurnStart { turn: 2 }).unwrap();
    drop(first);
    session.append(TurnStart { turn: 3 }).unwrap();
    assert_eq!((heard.try_iter().count(), heard_too.try_iter().count()), (2, 1));
}
