//! One behaviour each. None knows how the store works.

use std::sync::Arc;

use futures_util::future::join_all;
use session::{Seed, SessionTitle, Sessions, TurnEnd, TurnReason};

use super::fixture::{CWD, Strange, begin, child, is_absent, lines, open_turn, stamping, title, whole_turn};
use super::readers::{
    a_listing_shows_beginnings, a_listing_shows_what_a_fork_began_with, an_unknown_id_is_not_found,
    readers_are_not_in_the_way, unknown_events_can_be_read_and_not_continued,
};
use super::{Check, Place};
use crate::{Busy, CreateError, OpenError, RemoveError, Repair};

macro_rules! checks {
    ($($check:ident),* $(,)?) => {
        /// Every check, by name.
        pub(super) const ALL: &[(&str, Check)] = &[$((stringify!($check), |place| Box::pin($check(place)))),*];
    };
}

checks![
    nothing_is_kept_before_the_first_flush,
    dropped_without_a_flush_leaves_nothing,
    released_without_an_event_leaves_nothing,
    discarded_leaves_nothing,
    discarding_keeps_what_was_opened,
    what_was_flushed_comes_back_byte_for_byte,
    what_was_not_flushed_is_written_by_release,
    many_flushes_at_once_keep_the_order,
    a_reopened_session_goes_on,
    two_never_write_one_session,
    letting_go_frees,
    a_refused_open_frees,
    a_session_is_created_once,
    readers_are_not_in_the_way,
    an_unknown_id_is_not_found,
    a_listing_shows_beginnings,
    a_listing_shows_what_a_fork_began_with,
    an_interrupted_turn_is_closed,
    unknown_events_can_be_read_and_not_continued,
    a_child_comes_with_its_stamps,
    a_child_without_events_of_its_own_is_refused,
    a_released_session_takes_no_flush,
    a_session_is_removed_when_nobody_writes_it,
];

// D-11
async fn nothing_is_kept_before_the_first_flush(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    (1..400).for_each(|turn| whole_turn(&session, turn));
    is_absent(&place, &sessions, session.id()).await;
}

// D-11
async fn dropped_without_a_flush_leaves_nothing(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    whole_turn(&session, 1);
    let id = session.id();
    drop(session);
    is_absent(&place, &sessions, id).await;
}

async fn released_without_an_event_leaves_nothing(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    session.release().await.expect("there is nothing to write");
    is_absent(&place, &sessions, session.id()).await;
}

// D-11
async fn discarded_leaves_nothing(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    whole_turn(&session, 1);
    session.discard().await;
    is_absent(&place, &sessions, session.id()).await;
    let flushed = begin(&store, &sessions).await;
    whole_turn(&flushed, 1);
    flushed.flush().await.expect("it can be written");
    flushed.discard().await;
    is_absent(&place, &sessions, flushed.id()).await;
    flushed.flush().await.expect_err("there is nothing to be durable in");
    is_absent(&place, &sessions, flushed.id()).await;
}

async fn discarding_keeps_what_was_opened(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    whole_turn(&session, 1);
    session.release().await.expect("it can be written");
    let opened = store.open(&sessions, session.id()).await.expect("nobody has it");
    whole_turn(&opened.session, 2);
    opened.session.discard().await;
    let opened = store.open(&sessions, session.id()).await.expect("it was let go of");
    assert_eq!(lines(&opened.session.snapshot()), lines(&session.snapshot()));
}

async fn what_was_flushed_comes_back_byte_for_byte(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    title(&session, "über\u{2028} \"all\"\n\t\\");
    (1..200).for_each(|turn| whole_turn(&session, turn));
    session.flush().await.expect("it can be written");
    let read = place.store().read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
    assert_eq!(read.decoded.log().header(), session.header());
    assert_eq!(lines(read.decoded.log()), lines(&session.snapshot()));
    assert_eq!(read.torn, 0);

    session.release().await.expect("it can be written");
    let opened = place.store().open(&sessions, session.id()).await.expect("nobody has it");
    assert_eq!(opened.repairs, []);
    assert_eq!(lines(&opened.session.snapshot()), lines(&session.snapshot()));
    assert_eq!(opened.session.header(), session.header());
}

async fn what_was_not_flushed_is_written_by_release(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    for flushed_before in [false, true] {
        let session = begin(&store, &sessions).await;
        if flushed_before {
            session.flush().await.expect("it can be written");
        }
        (1..400).for_each(|turn| whole_turn(&session, turn));
        session.release().await.expect("it can be written");
        let read = place.store().read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
        assert_eq!(lines(read.decoded.log()), lines(&session.snapshot()));
    }
}

async fn many_flushes_at_once_keep_the_order(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    let other = begin(&store, &sessions).await;
    for round in 0..20 {
        let flushes = (0..10).map(|n| {
            title(&session, format!("{round}.{n}"));
            title(&other, format!("{n}"));
            // An `async fn` does nothing before its first poll: the futures are polled together, below.
            [session.clone(), other.clone()]
        });
        let flushes: Vec<_> = flushes.flatten().map(|session| async move { session.flush().await }).collect();
        join_all(flushes).await.into_iter().for_each(|flushed| flushed.expect("it can be written"));
        for session in [&session, &other] {
            let read = place.store().read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
            assert_eq!(lines(read.decoded.log()), lines(&session.snapshot()));
        }
    }
}

async fn a_reopened_session_goes_on(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    let session = begin(&place.store(), &sessions).await;
    whole_turn(&session, 1);
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    let mut expected = lines(&session.snapshot());
    for turn in 2..10 {
        let opened = place.store().open(&sessions, session.id()).await.expect("nobody has it");
        assert_eq!(lines(&opened.session.snapshot()), expected);
        whole_turn(&opened.session, turn);
        if turn % 2 == 0 {
            opened.session.flush().await.expect("it can be written");
        }
        opened.session.release().await.expect("it can be written");
        expected = lines(&opened.session.snapshot());
    }
}

// D-50
async fn two_never_write_one_session(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    let (one, two) = (place.store(), place.store());
    let session = begin(&one, &sessions).await;
    session.flush().await.expect("it can be written");
    for store in [&one, &two] {
        match store.open(&sessions, session.id()).await {
            Err(OpenError::Busy(busy)) => {
                assert_eq!(busy, Busy { id: session.id(), holder: Some(std::process::id()) });
            }
            other => panic!("opened twice: {other:?}"),
        }
    }
    session.append(SessionTitle { title: "mine".into(), source: "user".into() }).expect("the session is open");
    session.flush().await.expect("still the writer");
}

// D-50
async fn letting_go_frees(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    let session = begin(&place.store(), &sessions).await;
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    let released = place.store().open(&sessions, session.id()).await.expect("it was released");
    drop(released);
    for _ in 0..50 {
        let opened = place.store().open(&sessions, session.id()).await.expect("it was dropped");
        title(&opened.session, "on");
        opened.session.flush().await.expect("it can be written");
    }
}

async fn a_refused_open_frees(place: Arc<dyn Place>) {
    let knowing = Sessions::new();
    knowing.learn::<Strange>().expect("the tag is free");
    let session = begin(&place.store(), &knowing).await;
    session.append(Strange { what: "else".into() }).expect("the session is open");
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    let (store, plain) = (place.store(), Sessions::new());
    for _ in 0..2 {
        assert!(matches!(store.open(&plain, session.id()).await, Err(OpenError::Foreign { .. })));
    }
    place.store().open(&knowing, session.id()).await.expect("the refused ones let go");
}

async fn a_session_is_created_once(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    assert!(matches!(store.create(&session).await, Err(CreateError::Busy(_))));
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    assert!(matches!(store.create(&session).await, Err(CreateError::Exists { .. })));
    store.open(&sessions, session.id()).await.expect("the refused one let go");
}

async fn an_interrupted_turn_is_closed(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    let session = begin(&place.store(), &sessions).await;
    whole_turn(&session, 1);
    open_turn(&session, 2);
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    let opened = place.store().open(&sessions, session.id()).await.expect("nobody has it");
    assert_eq!(opened.repairs, [Repair::InterruptedTurn { turn: 2, events: 2 }]);
    let end = opened.session.latest::<TurnEnd>().expect("two turns ended");
    assert_eq!((end.turn, &end.reason), (2, &TurnReason::Interrupted));
    let before = lines(&session.snapshot());
    assert_eq!(lines(&opened.session.snapshot())[..before.len()], before, "nothing is truncated");
    opened.session.release().await.expect("it can be written");
    let again = place.store().open(&sessions, session.id()).await.expect("nobody has it");
    assert_eq!(again.repairs, [], "it is closed once");
}

// D-06
async fn a_child_comes_with_its_stamps(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), stamping());
    let parent = begin(&store, &sessions).await;
    whole_turn(&parent, 1);
    for seed in [Seed::Fresh, Seed::ClosedTurns] {
        let child = child(&parent, seed);
        store.create(&child).await.expect("a new session can be kept");
        child.flush().await.expect("it can be written");
        let read = place.store().read(&sessions.vocabulary(), child.id()).await.expect("it was flushed");
        assert_eq!(read.decoded.log().header(), child.header());
        let stamp = read.decoded.log().latest::<SessionTitle>().expect("the stamp is in the first batch");
        assert_eq!(&*stamp.title, "stamp");
    }
}

// D-12
async fn a_child_without_events_of_its_own_is_refused(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let unstamped = child(&sessions.create(CWD), Seed::Fresh);
    store.create(&unstamped).await.expect("a new session can be kept");
    unstamped.flush().await.expect("it can be written");
    unstamped.release().await.expect("it can be written");
    assert!(matches!(store.open(&sessions, unstamped.id()).await, Err(OpenError::Unborn { .. })));
    store.read(&sessions.vocabulary(), unstamped.id()).await.expect("it can be read");
}

async fn a_released_session_takes_no_flush(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    title(&session, "one");
    session.flush().await.expect("it can be written");
    session.release().await.expect("it can be written");
    session.flush().await.expect("everything is durable already");
    session.release().await.expect("releasing again changes nothing");
    let opened = place.store().open(&sessions, session.id()).await.expect("nobody has it");
    title(&opened.session, "two");
    session.flush().await.expect("everything that it ever held is durable");
    opened.session.release().await.expect("it can be written");
    let read = store.read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
    assert_eq!(read.decoded.log().len(), 2);
}

async fn a_session_is_removed_when_nobody_writes_it(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let (session, other) = (begin(&store, &sessions).await, begin(&store, &sessions).await);
    let (id, kept) = (session.id(), other.id());
    assert!(
        matches!(store.remove(id).await, Err(RemoveError::NotFound(_) | RemoveError::Busy(_))),
        "nothing is flushed"
    );
    for session in [&session, &other] {
        whole_turn(session, 1);
        session.flush().await.expect("nothing fails");
    }
    assert!(matches!(store.remove(id).await, Err(RemoveError::Busy(Busy { id: busy, .. })) if busy == id));
    session.flush().await.expect("it is still written");
    session.release().await.expect("nothing fails");
    store.remove(id).await.expect("nobody writes it");
    assert!(matches!(store.remove(id).await, Err(RemoveError::NotFound(_))), "once");
    let rows = store.list(&sessions.vocabulary()).await.expect("it can be listed");
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), [kept]);
    other.release().await.expect("nothing fails");
    store.remove(kept).await.expect("nobody writes it");
    is_absent(&place, &sessions, id).await;
}
