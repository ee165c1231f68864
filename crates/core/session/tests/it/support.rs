//! Payloads, a house whose clock stands still, and logs as text.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use llm::{Content, Message, Role, ToolCall};
use serde::{Deserialize, Serialize};
use session::*;

pub(crate) const NOW: u64 = 1_790_000_000_123;
/// Long enough for a slow machine; only a test that hangs meets it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
pub(crate) const TOP: &str =
    r#"{"format":1,"id":"01999999-0000-7000-8000-000000000001","createdAt":1790000000000,"cwd":"/abs"}"#;

/// A sandbox override as its policy crate writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mode {
    pub mode: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl Payload for Mode {
    const TAG: &'static str = "sandbox/mode";
    const DECISIVE: bool = true;
}

/// An approval pin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pin {
    pub policy: String,
}

impl Payload for Pin {
    const TAG: &'static str = "approval/policy";
    const DECISIVE: bool = true;
}

/// What a plugin might write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub n: u32,
}

impl Payload for Note {
    const TAG: &'static str = "test/note";
    const IGNORABLE: bool = true;
}

pub(crate) struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        NOW
    }
}

/// A house that knows the payloads above, without contributors.
pub(crate) fn house() -> Arc<Sessions> {
    let house = Sessions::with_clock(Arc::new(Still));
    house.learn::<Mode>().unwrap();
    house.learn::<Pin>().unwrap();
    house.learn::<Note>().unwrap();
    house
}

pub(crate) fn session() -> Session {
    house().create("/abs")
}

pub(crate) fn mode(mode: &str) -> Mode {
    Mode { mode: mode.into(), source: None }
}

pub(crate) fn user(session: &Session, text: &str) {
    let message = Arc::new(Message::user(text));
    session.append_with(|seq| UserMessage { id: MessageId(seq), message, source: Source::Prompt }).unwrap();
}

/// Three events: start, a prompt with the turn's number, end.
pub(crate) fn turn(session: &Session, turn: u32) {
    session.append(TurnStart { turn }).unwrap();
    user(session, &format!("prompt {turn}"));
    session.append(TurnEnd { turn, reason: TurnReason::Completed }).unwrap();
}

pub(crate) fn call(id: &str) -> Content {
    Content::ToolCall(ToolCall { call_id: id.into(), name: "read".into(), arguments: "{}".into() })
}

pub(crate) fn asks(turn: u32, step: u32, ids: &[&str]) -> AssistantMessage {
    let content = ids.iter().map(|id| call(id)).collect();
    let message = Arc::new(Message { role: Role::Assistant, content });
    AssistantMessage { turn, step, message, usage: None, interrupted: false }
}

pub(crate) fn answer(turn: u32, step: u32, id: &str) -> ToolReturned {
    let content = vec![Content::text("done")];
    ToolReturned { turn, step, call_id: id.into(), content, is_error: false, error: None, meta: None }
}

pub(crate) fn accepted(session: &Session, text: &str) -> MessageId {
    accepted_as(session, Delivery::Followup, text)
}

pub(crate) fn accepted_as(session: &Session, delivery: Delivery, text: &str) -> MessageId {
    let message = Arc::new(Message::user(text));
    let make = |seq| InboxAccepted { id: MessageId(seq), delivery, message, source: Source::Prompt };
    MessageId(session.append_with(make).unwrap())
}

pub(crate) fn fork(parent: &Session) -> Session {
    Session::delegated(Delegation::capture(parent).unwrap(), Seed::ClosedTurns)
}

pub(crate) fn spawn(parent: &Session) -> Session {
    Session::delegated(Delegation::capture(parent).unwrap(), Seed::Fresh)
}

pub(crate) fn tags(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(|event| event.tag().to_owned()).collect()
}

pub(crate) fn lines(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(Event::to_json).collect()
}

/// What the model is shown, a text a message.
pub(crate) fn shown(session: &Session) -> Vec<String> {
    session.messages().unwrap().iter().map(|message| message.text()).collect()
}

pub(crate) fn waiting(session: &Session) -> Vec<String> {
    let texts: Vec<String> = session.pending().iter().map(|accepted| accepted.message.text()).collect();
    assert_eq!(session.pending_len(), texts.len());
    texts
}

/// The file, as a store would write it.
pub(crate) fn text(log: &Snapshot) -> String {
    let mut text = serde_json::to_string(&**log.header()).unwrap();
    for line in lines(log) {
        text += "\n";
        text += &line;
    }
    text + "\n"
}

/// A top-level log of these lines.
pub(crate) fn log(lines: &[&str]) -> String {
    [&[TOP], lines].concat().join("\n") + "\n"
}

pub(crate) fn decode(text: &str) -> Decoded {
    house().vocabulary().decode(text).unwrap()
}

pub(crate) fn refused(text: &str) -> DecodeError {
    house().vocabulary().decode(text).err().expect("a log that cannot be read")
}

/// Written and read again, then opened in the same house.
pub(crate) fn reopened(session: &Session) -> Session {
    let decoded = session.house().vocabulary().decode(text(&session.snapshot())).unwrap();
    session.house().resume(decoded).unwrap()
}

/// Runs `work` on a thread of its own, and fails instead of hanging.
pub(crate) fn within_deadline<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, finished) = channel();
    let thread = std::thread::spawn(move || drop(done.send(work())));
    match finished.recv_timeout(DEADLINE) {
        Ok(made) => made,
        Err(_) if thread.is_finished() => std::panic::resume_unwind(thread.join().unwrap_err()),
        Err(_) => panic!("still not done after {DEADLINE:?}"),
    }
}

/// Everything that arrives, up to and including the first for which `last` holds.
pub(crate) fn received<T>(from: &Receiver<T>, mut last: impl FnMut(&T) -> bool) -> Vec<T> {
    let mut all = Vec::new();
    loop {
        let next = from.recv_timeout(DEADLINE).expect("more before the deadline");
        let done = last(&next);
        all.push(next);
        if done {
            return all;
        }
    }
}
