use std::any::{Any, TypeId};
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use llm::Message;
use serde::{Serialize, de::DeserializeOwned};

use crate::DamagedPayload;

/// A fact that survives a restart. The type is the key; the tag is only for the wire.
///
/// ```
/// # use serde::{Serialize, Deserialize};
/// #[derive(Serialize, Deserialize)]
/// struct Bookmarked { note: String }
/// impl session::Payload for Bookmarked {
///     const TAG: &'static str = "bookmarks/added";
///     const IGNORABLE: bool = true;
/// }
/// let sessions = session::Sessions::new();
/// sessions.learn::<Bookmarked>().unwrap();
/// let session = sessions.create("/home/me/project");
/// session.append(Bookmarked { note: "here".into() }).unwrap();
/// assert_eq!(session.latest::<Bookmarked>().unwrap().note, "here");
/// ```
pub trait Payload: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// `family/name` on the wire.
    const TAG: &'static str;
    /// Whether one may skip it without knowing its type.
    const IGNORABLE: bool = false;
    /// Whether it decides something (policy, inbox, turns): then it is decoded when a log is opened, so that damage is
    /// refused there and not met later.
    const DECISIVE: bool = false;
    /// Whether the model is shown it; then [`Payload::message`] may answer.
    const SHOWN: bool = false;

    /// What the model sees of it.
    fn message(&self) -> Option<Arc<Message>> {
        None
    }
}

/// One line of a log: an envelope around a typed payload, or around one that nobody here knows.
#[derive(Clone)]
pub struct Event(Arc<dyn Record>);

/// An [`Event`] known to carry an `E`.
pub struct Typed<E>(Event, PhantomData<fn() -> E>);

pub(crate) trait Record: Send + Sync {
    fn head(&self) -> Head;
    fn tag(&self) -> &str;
    fn payload(&self) -> Result<Option<&dyn Any>, DamagedPayload>;
    fn message(&self) -> Result<Option<Arc<Message>>, DamagedPayload>;
    fn write(&self, line: &mut Vec<u8>);
}

#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub seq: u64,
    pub time: u64,
    pub ignorable: bool,
    pub kind: Option<TypeId>,
}

struct Live<E> {
    seq: u64,
    time: u64,
    payload: E,
}

impl Event {
    pub(crate) fn live<E: Payload>(seq: u64, time: u64, payload: E) -> Self {
        Self(Arc::new(Live { seq, time, payload }))
    }

    pub(crate) fn of(record: impl Record + 'static) -> Self {
        Self(Arc::new(record))
    }

    /// Its place in the log, from 0 without a gap.
    pub fn seq(&self) -> u64 {
        self.0.head().seq
    }

    /// Milliseconds since the Unix epoch.
    pub fn time(&self) -> u64 {
        self.0.head().time
    }

    /// For people and for the wire. Code asks [`Event::get`].
    pub fn tag(&self) -> &str {
        self.0.tag()
    }

    /// Whether both are one event, which logs share by forks alone: then everything before it is shared as well.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }

    /// Whether its type was known to whoever read it.
    pub fn is_known(&self) -> bool {
        self.0.head().kind.is_some()
    }

    /// Whether one may skip it without knowing its type.
    pub fn is_ignorable(&self) -> bool {
        self.0.head().ignorable
    }

    /// The payload, if it is an `E`. One that turns out damaged is none; [`Event::decode`] says so.
    pub fn get<E: Payload>(&self) -> Option<&E> {
        if self.0.head().kind != Some(TypeId::of::<E>()) {
            return None;
        }
        self.0.payload().ok()??.downcast_ref()
    }

    /// The payload, if it is an `E`; an error if it should be one and is damaged.
    pub fn decode<E: Payload>(&self) -> Result<Option<&E>, DamagedPayload> {
        if self.0.head().kind != Some(TypeId::of::<E>()) {
            return Ok(None);
        }
        Ok(self.0.payload()?.and_then(|payload| payload.downcast_ref()))
    }

    /// The event as one that is known to carry an `E`.
    pub fn typed<E: Payload>(&self) -> Option<Typed<E>> {
        self.get::<E>().map(|_| Typed(self.clone(), PhantomData))
    }

    /// Appends its line to `line`, without a newline: as it was read, byte for byte, if it was read.
    pub fn write(&self, line: &mut Vec<u8>) {
        self.0.write(line);
    }

    /// Its line, without a newline.
    pub fn to_json(&self) -> String {
        let mut line = Vec::new();
        self.write(&mut line);
        String::from_utf8(line).expect("JSON is UTF-8")
    }

    pub(crate) fn head(&self) -> Head {
        self.0.head()
    }

    /// What the model sees of it.
    pub fn message(&self) -> Result<Option<Arc<Message>>, DamagedPayload> {
        self.0.message()
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl<E: Payload> Typed<E> {
    /// The event around the payload.
    pub fn event(&self) -> &Event {
        &self.0
    }
}

impl<E> Clone for Typed<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<E: Payload> Deref for Typed<E> {
    type Target = E;
    fn deref(&self) -> &E {
        self.0.get().expect("checked when it was made")
    }
}

impl<E: Payload> Record for Live<E> {
    fn head(&self) -> Head {
        Head { seq: self.seq, time: self.time, ignorable: E::IGNORABLE, kind: Some(TypeId::of::<E>()) }
    }

    fn tag(&self) -> &str {
        E::TAG
    }

    fn payload(&self) -> Result<Option<&dyn Any>, DamagedPayload> {
        Ok(Some(&self.payload))
    }

    fn message(&self) -> Result<Option<Arc<Message>>, DamagedPayload> {
        Ok(self.payload.message())
    }

    fn write(&self, line: &mut Vec<u8>) {
        #[derive(Serialize)]
        struct Line<'a, E> {
            seq: u64,
            time: u64,
            r#type: &'static str,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            ignorable: bool,
            data: &'a E,
        }
        let Self { seq, time, payload } = self;
        let whole = Line { seq: *seq, time: *time, r#type: E::TAG, ignorable: E::IGNORABLE, data: payload };
        let start = line.len();
        serde_json::to_writer(&mut *line, &whole).expect("payloads serialize to memory");
        // Raw JSON in a payload is written as it came. A newline in it is blank space: strings have theirs escaped.
        line[start..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
    }
}
