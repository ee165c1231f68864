use std::sync::Arc;

use llm::Message;
use serde::{Deserialize, Serialize};
use session::{
    AssistantMessage, Delegation, MessageId, Payload, Seed, Session, SessionId, SessionTitle, Sessions, Snapshot,
    Source, StepStart, TurnEnd, TurnReason, TurnStart, UserMessage,
};

use super::Place;
use crate::{OpenError, ReadError, Row, SessionStore, Summary};

/// Known in some houses and not in others, and not to be skipped.
#[derive(Serialize, Deserialize)]
pub(super) struct Strange {
    pub what: String,
}

impl Payload for Strange {
    const TAG: &'static str = "contract/strange";
}

/// As [`Strange`], but one may skip it.
#[derive(Serialize, Deserialize)]
pub(super) struct Skippable {}

impl Payload for Skippable {
    const TAG: &'static str = "contract/skippable";
    const IGNORABLE: bool = true;
}

/// A workspace root for sessions that never look at it.
pub(super) const CWD: &str = "/home/me/project";

pub(super) fn title(session: &Session, title: impl Into<Arc<str>>) {
    session.append(SessionTitle { title: title.into(), source: "user".into() }).expect("the session is open");
}

/// The newline, the quote and the two-byte letter must survive.
pub(super) fn whole_turn(session: &Session, turn: u32) {
    open_turn(session, turn);
    session.append(TurnEnd { turn, reason: TurnReason::Completed }).expect("the session is open");
}

pub(super) fn open_turn(session: &Session, turn: u32) {
    session.append(TurnStart { turn }).expect("the session is open");
    let said = UserMessage {
        id: MessageId(session.len()),
        message: Arc::new(Message::user("say \"fünf\"\nplease")),
        source: Source::Prompt,
    };
    session.append(said).expect("the session is open");
    session.append(StepStart { turn, step: 1 }).expect("the session is open");
    let message = Arc::new(Message::user("fünf"));
    let reply = AssistantMessage { turn, step: 1, message, usage: None, interrupted: false };
    session.append(reply).expect("the session is open");
}

pub(super) fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).expect("no contributor panics"), seed)
}

/// A house whose children are stamped.
pub(super) fn stamping() -> Arc<Sessions> {
    struct Stamp;
    impl session::Contributor for Stamp {
        fn contribute(&self, _: &Snapshot, stamps: &mut session::Stamps) {
            stamps.add(SessionTitle { title: "stamp".into(), source: "prompt".into() });
        }
    }
    let house = Sessions::new();
    // For as long as the house lives.
    std::mem::forget(house.register_contributor("stamp", Arc::new(Stamp)));
    house
}

/// Everything that a log says, byte for byte.
pub(super) fn lines(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(|event| event.to_json()).collect()
}

pub(super) async fn begin(store: &Arc<dyn SessionStore>, sessions: &Arc<Sessions>) -> Session {
    let session = sessions.create(CWD);
    store.create(&session).await.expect("a new session can be kept");
    session
}

pub(super) async fn rows(store: &Arc<dyn SessionStore>, sessions: &Sessions) -> Vec<Row> {
    store.list(&sessions.vocabulary()).await.expect("the place can be listed")
}

pub(super) fn summary(row: &Row) -> &Summary {
    row.found.as_ref().expect("the log can be read")
}

pub(super) async fn is_absent(place: &Arc<dyn Place>, sessions: &Arc<Sessions>, session: SessionId) {
    let store = place.store();
    let read = store.read(&sessions.vocabulary(), session).await;
    assert!(matches!(read, Err(ReadError::NotFound(_))), "something is kept: {read:?}");
    assert!(matches!(store.open(sessions, session).await, Err(OpenError::NotFound(_))));
    assert!(rows(&store, sessions).await.is_empty(), "something is listed");
}
