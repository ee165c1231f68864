//! What readers are promised.

use std::sync::Arc;

use session::{Seed, Session, Sessions};

use super::Place;
use super::fixture::{
    CWD, Skippable, Strange, begin, child, is_absent, lines, open_turn, rows, stamping, summary, title, whole_turn,
};
use crate::{OpenError, ReadError, Summary};

pub(super) async fn readers_are_not_in_the_way(place: Arc<dyn Place>) {
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

pub(super) async fn an_unknown_id_is_not_found(place: Arc<dyn Place>) {
    let sessions = Sessions::new();
    is_absent(&place, &sessions, sessions.create(CWD).id()).await;
}

pub(super) async fn a_listing_shows_beginnings(place: Arc<dyn Place>) {
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
        let alone = store.summary(&sessions.vocabulary(), row.id).await.expect("it is kept");
        assert_eq!((alone.header, alone.bytes), (summary.header.clone(), summary.bytes), "one alone tells the same");
    }
    let nobody = sessions.create("/nowhere").id();
    assert!(matches!(store.summary(&sessions.vocabulary(), nobody).await, Err(ReadError::NotFound(_))));
}

// D-48
pub(super) async fn a_listing_shows_what_a_fork_began_with(place: Arc<dyn Place>) {
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

pub(super) async fn unknown_events_can_be_read_and_not_continued(place: Arc<dyn Place>) {
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
