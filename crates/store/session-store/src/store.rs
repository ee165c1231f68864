use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use session::{Decoded, Event, Header, ResumeError, Session, SessionId, Sessions, TurnEnd, Vocabulary};

use crate::{CreateError, ListError, OpenError, ReadError, RemoveError};

/// Keeps sessions. Whoever writes one has leased it; readers never wait, never write, and never repair.
#[async_trait]
pub trait SessionStore: Send + Sync {
    /// Leases a new session and attaches a backing to it. Its first [`flush`](Session::flush) makes everything that it
    /// holds by then durable at once. Before that nothing of it can be seen here, and nothing is left of it when it is
    /// dropped. Discarding it removes it, whatever was flushed; discarding one that was opened only lets go of it.
    async fn create(&self, session: &Session) -> Result<(), CreateError>;

    /// Leases a session that is kept here, repairs what a crash left, and continues it in `sessions`. If that cannot
    /// be, nothing is changed.
    async fn open(&self, sessions: &Arc<Sessions>, id: SessionId) -> Result<Opened, OpenError>;

    /// Reads a session, whether or not someone writes it.
    async fn read(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Reading, ReadError>;

    /// What a listing tells of one session. Costs what its header and first events cost, not its log.
    async fn summary(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Summary, ReadError>;

    /// Every session kept here, in order of their ids. Costs what their headers and first events cost, not their
    /// length. One that cannot be read is a row that says why.
    async fn list(&self, vocabulary: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError>;

    /// Removes a session that nobody writes, for good. The sessions of its children stay.
    async fn remove(&self, id: SessionId) -> Result<(), RemoveError>;

    /// Where a session is or would be, for messages.
    fn place(&self, id: SessionId) -> String;
}

/// A session that was opened for writing. Dropping the session lets go of it; releasing it also flushes.
#[derive(Debug)]
pub struct Opened {
    /// The session, leased.
    pub session: Session,
    /// What had to be done to it, for people.
    pub repairs: Vec<Repair>,
}

/// What had to be done to a log before it could be continued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// It ended in the middle of a line. That part, which nobody was told is kept, was put aside.
    TornTail {
        /// How much.
        bytes: u64,
        /// Where it is now.
        moved_to: String,
    },
    /// It ended in the middle of a turn, which is closed now.
    InterruptedTurn {
        /// Which turn.
        turn: u32,
        /// How many events that took.
        events: u64,
    },
}

/// A session that was read.
#[derive(Clone)]
pub struct Reading {
    /// Its log.
    pub decoded: Decoded,
    /// How many bytes at its end are not a whole line: being written right now, or torn by a crash.
    pub torn: u64,
    /// The process that seems to write it. For people: it may have ended by the time one looks.
    pub holder: Option<u32>,
}

/// A session in a listing.
#[derive(Debug)]
pub struct Row {
    /// Which.
    pub id: SessionId,
    /// What its beginning says, or why that cannot be read.
    pub found: Result<Summary, ReadError>,
}

/// What can be told of a session without reading all of it.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The first line.
    pub header: Arc<Header>,
    /// The first events that are its own (behind the seed, for a fork), at most [`Summary::FIRST`]: for a child, its
    /// stamps and its descriptor.
    pub first: Vec<Event>,
    /// How long the log is, in bytes.
    pub bytes: u64,
    /// When it was last written, in milliseconds since the Unix epoch.
    pub modified: u64,
    /// The process that seems to write it. For people: it may have ended by the time one looks.
    pub holder: Option<u32>,
}

impl Summary {
    /// How many events a summary shows at most.
    pub const FIRST: usize = 16;
}

impl Opened {
    /// Continues what was read, and says what that closed. A store adds what it repaired itself.
    pub fn resume(sessions: &Arc<Sessions>, decoded: Decoded) -> Result<Self, ResumeError> {
        let session = sessions.resume(decoded)?;
        let events = session.len() - session.first_live_seq();
        let closed = session.latest::<TurnEnd>().filter(|end| end.event().seq() >= session.first_live_seq());
        let repair = |end: session::Typed<TurnEnd>| Repair::InterruptedTurn { turn: end.turn, events };
        Ok(Self { repairs: closed.map(repair).into_iter().collect(), session })
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TornTail { bytes, moved_to } => {
                write!(f, "the last {bytes} bytes were not a whole line; they are in {moved_to} now")
            }
            Self::InterruptedTurn { turn, events } => {
                write!(f, "turn {turn} had been interrupted; it is closed now ({events} events)")
            }
        }
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Reading");
        fields.field("id", &self.decoded.log().header().id()).field("events", &self.decoded.log().len());
        fields.field("torn", &self.torn).field("holder", &self.holder).finish()
    }
}
