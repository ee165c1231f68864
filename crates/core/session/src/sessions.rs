use std::sync::{Arc, PoisonError, RwLock};

use context::{NameTaken, Registration, Registry};

use crate::{
    Clock, Contributor, Decoded, Header, Payload, Rank, Session, SessionId, Snapshot, SystemClock, TagTaken,
    TurnReason, Vocabulary, recovery,
};

/// Where sessions come from: the clock, the vocabulary, and who hands what down to a child.
pub struct Sessions {
    clock: Arc<dyn Clock>,
    contributors: Registry<Ranked>,
    vocabulary: RwLock<Arc<Vocabulary>>,
    /// What the header of every child says, shared.
    origin: Arc<str>,
}

/// A contributor whose rank was asked for once, so that a capture runs none of its code but what it contributes.
struct Ranked {
    rank: Rank,
    contributor: Arc<dyn Contributor>,
}

/// Why a log that can be read cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// Events of unknown types that do not allow to be skipped: whoever wrote them knew something that matters here.
    #[error("the log holds events that this program does not know ({}): it can be read, not continued", .0.join(", "))]
    Foreign(Vec<Box<str>>),
    /// A child whose first events never reached the disk, so it was never announced.
    #[error("the log of a child without events of its own: the child was never announced, and its scope is not known")]
    Unborn,
    /// A payload that is needed to close what was interrupted is damaged.
    #[error(transparent)]
    Damaged(#[from] crate::DamagedPayload),
}

impl Sessions {
    /// A house with the machine's clock and the core's vocabulary.
    pub fn new() -> Arc<Self> {
        Self::with_clock(Arc::new(SystemClock))
    }

    /// A house with a clock of one's own.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Arc<Self> {
        let mut vocabulary = Vocabulary::default();
        crate::events::learn_core(&mut vocabulary).expect("the core's tags differ from each other");
        let vocabulary = RwLock::new(Arc::new(vocabulary));
        Arc::new(Self { clock, contributors: Registry::default(), vocabulary, origin: "subagent".into() })
    }

    /// A top-level session in `cwd`, the absolute path of its workspace root.
    pub fn create(self: &Arc<Self>, cwd: impl Into<Arc<str>>) -> Session {
        let header = Arc::new(Header::new(SessionId::mint(), cwd.into(), self.now(), None, 0));
        Session::new(self.clone(), Snapshot::new(header), 0)
    }

    /// Continues a log that was read. What a crash left open is closed first: calls without a result get an
    /// `interrupted` one, the turn ends as `interrupted`. Nothing else is written, and no policy.
    pub fn resume(self: &Arc<Self>, decoded: Decoded) -> Result<Session, ResumeError> {
        let Decoded { log, foreign } = decoded;
        if !foreign.is_empty() {
            return Err(ResumeError::Foreign(foreign));
        }
        if log.header.lineage.is_some() && log.len() <= log.header.seed_length {
            return Err(ResumeError::Unborn);
        }
        let first_live_seq = log.len();
        let why = "interrupted: the process ended before this call returned; it may have run in part";
        let closing = recovery::closing_events(&log, &TurnReason::Interrupted, why)?;
        let session = Session::new(self.clone(), log, first_live_seq);
        closing.append_to(&session).expect("a session that was just made is open");
        Ok(session)
    }

    /// Teaches this house a payload type, so that logs with it can be read and continued. There is no forgetting.
    pub fn learn<E: Payload>(&self) -> Result<(), TagTaken> {
        let mut current = self.vocabulary.write().unwrap_or_else(PoisonError::into_inner);
        let mut vocabulary = Vocabulary::clone(&current);
        vocabulary.learn::<E>()?;
        *current = Arc::new(vocabulary);
        Ok(())
    }

    /// The types known now.
    pub fn vocabulary(&self) -> Arc<Vocabulary> {
        self.vocabulary.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on `contributor` says what children inherit, in every delegation.
    pub fn register_contributor(
        &self,
        name: impl Into<Arc<str>>,
        contributor: Arc<dyn Contributor>,
    ) -> Result<Registration, NameTaken> {
        let rank = contributor.rank();
        self.contributors.register(name, Arc::new(Ranked { rank, contributor }))
    }

    /// Milliseconds since the Unix epoch, by this house's clock.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    pub(crate) fn contributors_by_rank(&self) -> Vec<(Arc<str>, Arc<dyn Contributor>)> {
        let mut contributors: Vec<(Arc<str>, Arc<Ranked>)> = self.contributors.list();
        contributors.sort_by_key(|(_, contributor)| contributor.rank);
        contributors.into_iter().map(|(name, ranked)| (name, ranked.contributor.clone())).collect()
    }

    pub(crate) fn origin(&self) -> Arc<str> {
        self.origin.clone()
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}
