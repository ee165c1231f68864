//! One behaviour each. None knows how the store works.

use std::sync::Arc;

use futures_util::future::join_all;
use session::{Seed, Session, SessionTitle, Sessions, TurnEnd, TurnReason};

use super::fixture::{CWD, Skippable, Strange, child, lines, open_turn, stamping, title, whole_turn};
use super::{Check, Place};
use crate::{Busy, CreateError, OpenError, ReadError, Repair, Row, SessionStore, Summary};

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
];

async fn begin(store: &Arc<dyn SessionStore>, sessions: &Arc<Sessions>) -> Session {
    let session = sessions.create(CWD);
    store.create(&session).await.expect("a new session can be kept");
    session
}

async fn rows(store: &Arc<dyn SessionStore>, sessions: &Sessions) -> Vec<Row> {
    store.list(&sessions.vocabulary()).await.expect("the place can be listed")
}

fn summary(row: &Row) -> &Summary {
    row.found.as_ref().expect("the log can be read")
}

async fn is_absent(place: &Arc<dyn Place>, sessions: &Arc<Sessions>, session: session::SessionId) {
    let store = place.store();
    let read = store.read(&sessions.vocabulary(), session).await;
    assert!(matches!(read, Err(ReadError::NotFound(_))), "something is kept: {read:?}");
    assert!(matches!(store.open(sessions, session).await, Err(OpenError::NotFound(_))));
    assert!(rows(&store, sessions).await.is_empty(), "something is listed");
}

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

async fn readers_are_not_in_the_way(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let session = begin(&store, &sessions).await;
    let reader = place.store();
    for turn in 1..20 {
        whole_turn(&session, turn);
        session.flush().await.expect("it can be written");
        open_turn(&session, turn);
        let read = reader.read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
        let (read_lines, all) = (lines(read.decoded.log()), lines(&session.snapshot()));
        assert_eq!(read_lines, all[..read_lines.len()], "a reader sees a prefix");
        assert!(read_lines.len() as u64 + 4 >= session.len(), "with everything that was flushed");
        assert_eq!(read.holder, Some(std::process::id()));
        session.flush().await.expect("it can be written");
    }
    session.release().await.expect("it can be written");
    let read = reader.read(&sessions.vocabulary(), session.id()).await.expect("it was flushed");
    assert_eq!(read.holder, None, "nobody has it any more");
}

async fn an_unknown_id_is_not_found(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    is_absent(&place, &sessions, sessions.create(CWD).id()).await;
}

async fn a_listing_shows_beginnings(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), Sessions::new());
    let mut all = Vec::new();
    for n in 0..10 {
        let session = begin(&store, &sessions).await;
        title(&session, format!("{n}"));
        (0..n * 30).for_each(|turn| whole_turn(&session, turn));
        session.flush().await.expect("it can be written");
        all.push(session);
    }
    all[3].release().await.expect("it can be written");
    all.sort_by_key(Session::id);
    let rows = rows(&place.store(), &sessions).await;
    let ids = |sessions: &[Session]| sessions.iter().map(Session::id).collect::<Vec<_>>();
    assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), ids(&all), "in order of their ids");
    for (row, session) in rows.iter().zip(&all) {
        let summary = summary(row);
        assert_eq!(summary.header, *session.header());
        assert_eq!(summary.holder, (session.id() != all[3].id()).then(std::process::id));
        let first: Vec<String> = summary.first.iter().map(|event| event.to_json()).collect();
        let written = lines(&session.snapshot());
        assert!(!first.is_empty() && first.len() <= Summary::FIRST);
        assert_eq!(first, written[..first.len()]);
        assert!(summary.bytes > written.iter().map(|line| line.len() as u64 + 1).sum(), "the header counts too");
    }
}

// D-48
async fn a_listing_shows_what_a_fork_began_with(place: Arc<dyn Place>) {
    let (store, sessions) = (place.store(), stamping());
    let parent = begin(&store, &sessions).await;
    (1..500).for_each(|turn| whole_turn(&parent, turn));
    parent.flush().await.expect("it can be written");
    let fork = child(&parent, Seed::ClosedTurns);
    store.create(&fork).await.expect("a new session can be kept");
    fork.flush().await.expect("it can be written");
    let rows = rows(&place.store(), &sessions).await;
    let row = rows.iter().find(|row| row.id == fork.id()).expect("it is listed");
    let first: Vec<&str> = summary(row).first.iter().map(|event| event.tag()).collect();
    assert_eq!(first, ["session/end-seed", "session/title"]);
    assert_eq!(summary(row).first[0].seq(), fork.header().seed_length());
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

async fn unknown_events_can_be_read_and_not_continued(place: Arc<dyn Place>) {
    let (store, knowing) = (place.store(), Sessions::new());
    knowing.learn::<Strange>().expect("the tag is free");
    knowing.learn::<Skippable>().expect("the tag is free");
    let skipped = begin(&store, &knowing).await;
    skipped.append(Skippable {}).expect("the session is open");
    let session = begin(&store, &knowing).await;
    session.append(Strange { what: "a \"thing\"".into() }).expect("the session is open");
    for session in [&skipped, &session] {
        session.flush().await.expect("it can be written");
        session.release().await.expect("it can be written");
    }
    let plain = Sessions::new();
    match store.open(&plain, session.id()).await {
        Err(OpenError::Foreign { tags, .. }) => assert_eq!(tags, [Box::from("contract/strange")]),
        other => panic!("not refused: {other:?}"),
    }
    let read = store.read(&plain.vocabulary(), session.id()).await.expect("it can be read");
    assert_eq!(lines(read.decoded.log()), lines(&session.snapshot()), "kept as it is");
    let opened = store.open(&plain, skipped.id()).await.expect("one may skip it");
    title(&opened.session, "on");
    opened.session.release().await.expect("it can be written");
    let read = store.read(&knowing.vocabulary(), skipped.id()).await.expect("it can be read");
    assert!(read.decoded.log().latest::<Skippable>().is_some(), "what one skips, one does not lose");
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
