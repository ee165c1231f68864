use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use llm::Message;
use pvec::PVec;

use crate::{DamagedPayload, Event, Header, Payload, TurnEnd};

/// A session at one instant: immutable, consistent, O(1) to take, shared with the log it came from.
#[derive(Clone)]
pub struct Snapshot {
    pub(crate) header: Arc<Header>,
    view: View,
    closed: Option<ClosedTurn>,
}

/// Events and every projection of them, as of one length. Cloning it is the whole cost of a fork.
#[derive(Clone)]
struct View {
    events: PVec<Event>,
    messages: Messages,
    latest: Latest,
}

/// What the model sees of the events.
#[derive(Clone)]
enum Messages {
    /// Kept up to date with every event.
    Projected(PVec<Arc<Message>>),
    /// The log was read and nobody has asked yet.
    Unread,
}

/// Where the last closed turn ended: what a fork starts from. Lengths, so that marking it copies nothing.
#[derive(Clone, Copy)]
struct ClosedTurn {
    events: usize,
    /// Not known until the messages are projected.
    messages: Option<usize>,
}

type Latest = Arc<HashMap<TypeId, Last, BuildHasherDefault<TypeIdHasher>>>;

/// Where the last event of a type is.
#[derive(Clone, Copy)]
struct Last {
    at: usize,
    /// The last one in the closed turns, where `at` lies behind them.
    closed: Option<usize>,
}

/// A `TypeId` is a hash already.
#[derive(Clone, Copy, Default)]
struct TypeIdHasher(u64);

impl Snapshot {
    /// The first line of the log.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// How many events there are, which is the `seq` of the next.
    pub fn len(&self) -> u64 {
        self.view.events.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last event of a type: O(1), whatever the length.
    pub fn latest<E: Payload>(&self) -> Option<&E> {
        self.latest_event::<E>()?.get()
    }

    /// The event around [`Snapshot::latest`].
    pub fn latest_event<E: Payload>(&self) -> Option<&Event> {
        self.view.events.get(self.view.latest.get(&TypeId::of::<E>())?.at)
    }

    /// The event at a `seq`.
    pub fn event(&self, seq: u64) -> Option<&Event> {
        self.view.events.get(usize::try_from(seq).ok()?)
    }

    /// Every event, in order.
    pub fn events(&self) -> &PVec<Event> {
        &self.view.events
    }

    /// The events from a `seq` on.
    pub fn events_from(&self, seq: u64) -> impl DoubleEndedIterator<Item = &Event> {
        self.view.events.iter_from(usize::try_from(seq).unwrap_or(usize::MAX))
    }

    /// The `seq` behind the last closed turn; 0 if no turn has closed.
    pub fn closed_len(&self) -> u64 {
        self.closed.as_ref().map_or(0, |closed| closed.events as u64)
    }

    /// What the model sees. Free for a log that was written here; one that was read is decoded for it each time, so ask
    /// the session, which remembers.
    pub fn messages(&self) -> Result<PVec<Arc<Message>>, DamagedPayload> {
        let mut projected = self.clone();
        projected.project()?;
        Ok(projected.projected())
    }

    /// For a log that begins here.
    pub(crate) fn new(header: Arc<Header>) -> Self {
        Self::with(header, Messages::Projected(PVec::default()))
    }

    /// For a log that is being read.
    pub(crate) fn read(header: Arc<Header>) -> Self {
        Self::with(header, Messages::Unread)
    }

    fn with(header: Arc<Header>, messages: Messages) -> Self {
        Self { header, view: View { events: PVec::default(), messages, latest: Latest::default() }, closed: None }
    }

    pub(crate) fn push(&mut self, event: Event) {
        let kind = event.head().kind;
        let view = &mut self.view;
        if let Messages::Projected(messages) = &mut view.messages
            && let Ok(Some(message)) = event.message()
        {
            messages.push(message);
        }
        if let Some(kind) = kind {
            let closed = self.closed.map_or(0, |closed| closed.events);
            let at = view.events.len();
            let last = Arc::make_mut(&mut view.latest).entry(kind).or_insert(Last { at, closed: None });
            *last = Last { at, closed: last.as_of(closed) };
        }
        view.events.push(event);
        if kind == Some(TypeId::of::<TurnEnd>()) {
            let messages = match &view.messages {
                Messages::Projected(messages) => Some(messages.len()),
                Messages::Unread => None,
            };
            self.closed = Some(ClosedTurn { events: view.events.len(), messages });
        }
    }

    /// Projects what was read, once.
    pub(crate) fn project(&mut self) -> Result<(), DamagedPayload> {
        if let Messages::Projected(_) = self.view.messages {
            return Ok(());
        }
        let mut messages = PVec::default();
        for (index, event) in self.view.events.iter().enumerate() {
            messages.extend(event.message()?);
            if let Some(closed) = &mut self.closed
                && closed.events == index + 1
            {
                closed.messages = Some(messages.len());
            }
        }
        self.view.messages = Messages::Projected(messages);
        Ok(())
    }

    /// The projection, if it has been made.
    pub(crate) fn projected(&self) -> PVec<Arc<Message>> {
        match &self.view.messages {
            Messages::Projected(messages) => messages.clone(),
            Messages::Unread => PVec::default(),
        }
    }

    /// Everything through the last closed turn, with the projections as they were then, under another header.
    pub(crate) fn closed_turns(&self) -> Option<ClosedTurns> {
        let closed = self.closed?;
        let messages = match (&self.view.messages, closed.messages) {
            (Messages::Projected(messages), Some(length)) => Messages::Projected(messages.first(length)),
            _ => Messages::Unread,
        };
        let as_of = |(kind, last): (&TypeId, &Last)| {
            let at = last.as_of(closed.events)?;
            Some((*kind, Last { at, closed: None }))
        };
        let latest = Arc::new(self.view.latest.iter().filter_map(as_of).collect());
        let view = View { events: self.view.events.first(closed.events), messages, latest };
        Some(ClosedTurns { view, closed })
    }
}

impl Last {
    /// Where the last one was when the closed turns ended.
    fn as_of(self, closed: usize) -> Option<usize> {
        if self.at < closed { Some(self.at) } else { self.closed }
    }
}

/// A prefix of a log that ends with a closed turn.
pub(crate) struct ClosedTurns {
    view: View,
    closed: ClosedTurn,
}

impl ClosedTurns {
    pub(crate) fn len(&self) -> u64 {
        self.view.events.len() as u64
    }

    pub(crate) fn under(self, header: Arc<Header>) -> Snapshot {
        Snapshot { header, view: self.view, closed: Some(self.closed) }
    }
}

impl Hasher for TypeIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (word, _) = bytes.split_first_chunk().expect("a type id is at least eight bytes");
        self.0 = u64::from_ne_bytes(*word);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}
