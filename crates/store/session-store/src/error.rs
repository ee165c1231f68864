use std::fmt;
use std::io;

use session::{DecodeError, ResumeError, SessionId};

/// Why a session cannot be kept here.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Someone writes it.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// A session with this id is kept here already.
    #[error("{place} exists already: a session is created once, and opened after that")]
    Exists {
        /// Where it is.
        place: String,
    },
    /// The session is kept somewhere else.
    #[error(transparent)]
    AlreadyBacked(#[from] session::AlreadyBacked),
    /// The disk, or a quota on it, is full.
    #[error("the disk is full: {0}")]
    Full(Fault),
    /// The system refused.
    #[error(transparent)]
    Io(Fault),
}

/// Why a session cannot be opened for writing. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// Someone writes it.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// It can be read, not continued: it holds events that this program does not know.
    #[error("{place} can be read, not continued: it holds events that this program does not know ({})", .tags.join(", "))]
    Foreign {
        /// Where it is.
        place: String,
        /// What is not known, by its tag.
        tags: Vec<Box<str>>,
    },
    /// A child that was never announced, so that its scope is not known.
    #[error("{place} is a child without events of its own: it was never announced, and its scope is not known")]
    Unborn {
        /// Where it is.
        place: String,
    },
    /// It is damaged before its end.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The disk, or a quota on it, is full.
    #[error("the disk is full: {0}")]
    Full(Fault),
    /// The system refused.
    #[error(transparent)]
    Io(Fault),
}

/// Why a session cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is none.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// It is damaged before its end.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] Fault),
}

/// Why a session cannot be removed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// There is none.
    #[error(transparent)]
    NotFound(#[from] NotFound),
    /// Someone writes it.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// The system refused.
    #[error(transparent)]
    Io(#[from] Fault),
}

/// Why the sessions kept here cannot be listed at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ListError(#[from] pub Fault);

/// No such session is kept here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no session {id}: there is no {place}")]
pub struct NotFound {
    /// Which.
    pub id: SessionId,
    /// Where it would be.
    pub place: String,
}

/// Two never write one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Which.
    pub id: SessionId,
    /// The process that may write it, where that is known.
    pub holder: Option<u32>,
}

/// A log is not what one would have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the log is.
    pub place: String,
    /// Counted from 1, the header; `None` where it is about the whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub why: String,
}

/// The system refused something.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {place}: {source}")]
pub struct Fault {
    /// What was tried, as in `write`.
    pub doing: &'static str,
    /// On what.
    pub place: String,
    /// What the system said.
    pub source: io::Error,
}

impl Fault {
    /// Whether the disk, or a quota on it, is full.
    pub fn is_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl Damage {
    /// What the decoder refused, in a log at `place`.
    pub fn decoding(place: impl Into<String>, error: DecodeError) -> Self {
        let (line, why) = match error {
            DecodeError::NoHeader => (Some(1), "the header is missing".to_owned()),
            DecodeError::Header(source) => (Some(1), format!("not a header: {source}")),
            DecodeError::Damaged { line, source } => (Some(line), source.to_string()),
            DecodeError::Gap { line, found, expected } => {
                (Some(line), format!("has seq {found} where {expected} belongs"))
            }
        };
        Self { place: place.into(), line, why }
    }
}

impl OpenError {
    /// What could be read and not be resumed, in a log at `place`.
    pub fn resuming(place: impl Into<String>, error: ResumeError) -> Self {
        let place = place.into();
        match error {
            ResumeError::Foreign(tags) => Self::Foreign { place, tags },
            ResumeError::Unborn => Self::Unborn { place },
            ResumeError::Damaged(damaged) => {
                let line = usize::try_from(damaged.seq).ok().and_then(|seq| seq.checked_add(2));
                Self::Damaged(Damage { place, line, why: format!("({}) {}", damaged.tag, damaged.message) })
            }
        }
    }
}

impl From<ReadError> for OpenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound(none) => none.into(),
            ReadError::Damaged(damage) => damage.into(),
            ReadError::Io(fault) => fault.into(),
        }
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        if fault.is_full() { Self::Full(fault) } else { Self::Io(fault) }
    }
}

impl From<Fault> for CreateError {
    fn from(fault: Fault) -> Self {
        if fault.is_full() { Self::Full(fault) } else { Self::Io(fault) }
    }
}

impl std::error::Error for Busy {}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.holder {
            Some(pid) if pid == std::process::id() => write!(f, "session {} is already open in this process", self.id),
            Some(pid) => write!(f, "session {} is open in process {pid}", self.id),
            None => write!(f, "session {} is open in another process", self.id),
        }
    }
}

impl std::error::Error for Damage {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line} is damaged: {}", self.place, self.why),
            None => write!(f, "{} is damaged: {}", self.place, self.why),
        }
    }
}
