use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use context::Boxed;
use session::{Backing, Decoded, FlushError, Session, SessionId, Sessions, Snapshot, Vocabulary};

use crate::{
    Busy, CreateError, Damage, ListError, NotFound, OpenError, Opened, ReadError, Reading, RemoveError, Row,
    SessionStore, Summary,
};

/// Keeps sessions in memory, as text, for tests and for programs that need nothing after they end. Clones are the
/// same store.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<SessionId, Kept>>>);

#[derive(Default)]
struct Kept {
    text: String,
    modified: u64,
    leased: bool,
}

struct Memory {
    store: MemoryStore,
    session: SessionId,
    /// Whether the session was there before.
    opened: bool,
    written: Mutex<Written>,
}

/// How far the text has come.
struct Written {
    /// `None` before the first flush.
    events: Option<u64>,
    leased: bool,
}

impl MemoryStore {
    /// What another process would find if this one were killed now: everything that was flushed, and no lease.
    #[must_use]
    pub fn after_crash(&self) -> Self {
        let flushed = |kept: &Kept| Kept { text: kept.text.clone(), modified: kept.modified, leased: false };
        let kept = self.lock();
        let whole = kept.iter().filter(|(_, kept)| !kept.text.is_empty());
        Self(Arc::new(Mutex::new(whole.map(|(id, kept)| (*id, flushed(kept))).collect())))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lease(&self, id: SessionId) -> Result<(), Busy> {
        match std::mem::replace(&mut self.lock().entry(id).or_default().leased, true) {
            true => Err(Busy { id, holder: Some(std::process::id()) }),
            false => Ok(()),
        }
    }

    fn unlease(&self, id: SessionId) {
        let mut kept = self.lock();
        if let Some(entry) = kept.get_mut(&id) {
            entry.leased = false;
            if entry.text.is_empty() {
                kept.remove(&id);
            }
        }
    }

    /// Holds the lease that was just taken.
    fn backing(&self, session: SessionId, opened: bool) -> Arc<Memory> {
        let written = Mutex::new(Written { events: None, leased: true });
        Arc::new(Memory { store: self.clone(), session, opened, written })
    }

    fn summarize(&self, vocabulary: &Vocabulary, id: SessionId) -> Result<Summary, ReadError> {
        let (decoded, holder) = self.decode(vocabulary, id)?;
        let (header, log) = (decoded.log().header().clone(), decoded.log());
        let first = log.events_from(header.seed_length()).take(Summary::FIRST).cloned().collect();
        let (bytes, modified) = self.lock().get(&id).map_or((0, 0), |kept| (kept.text.len() as u64, kept.modified));
        Ok(Summary { header, first, bytes, modified, holder })
    }

    fn decode(&self, vocabulary: &Vocabulary, id: SessionId) -> Result<(Decoded, Option<u32>), ReadError> {
        let (text, leased) = match self.lock().get(&id) {
            Some(kept) if !kept.text.is_empty() => (kept.text.clone(), kept.leased),
            _ => return Err(NotFound { id, place: self.place(id) }.into()),
        };
        let decoded = vocabulary.decode(text).map_err(|error| Damage::decoding(self.place(id), error))?;
        Ok((decoded, leased.then(std::process::id)))
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn create(&self, session: &Session) -> Result<(), CreateError> {
        let id = session.id();
        self.lease(id)?;
        let backing = self.backing(id, false);
        if self.lock().get(&id).is_some_and(|kept| !kept.text.is_empty()) {
            return Err(CreateError::Exists { place: self.place(id) });
        }
        Ok(session.attach(backing)?)
    }

    async fn open(&self, sessions: &Arc<Sessions>, id: SessionId) -> Result<Opened, OpenError> {
        if self.lock().get(&id).is_none_or(|kept| kept.text.is_empty()) {
            return Err(NotFound { id, place: self.place(id) }.into());
        }
        self.lease(id)?;
        let backing = self.backing(id, true);
        let (decoded, _) = self.decode(&sessions.vocabulary(), id)?;
        backing.lock().events = Some(decoded.log().len());
        let opened = Opened::resume(sessions, decoded).map_err(|error| OpenError::resuming(self.place(id), error))?;
        opened.session.attach(backing).expect("a session that was just resumed is kept nowhere");
        Ok(opened)
    }

    async fn read(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Reading, ReadError> {
        let (decoded, holder) = self.decode(vocabulary, id)?;
        Ok(Reading { decoded, torn: 0, holder })
    }

    async fn summary(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Summary, ReadError> {
        self.summarize(vocabulary, id)
    }

    async fn list(&self, vocabulary: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError> {
        let kept = |(id, kept): (&SessionId, &Kept)| (!kept.text.is_empty()).then_some(*id);
        let ids: Vec<SessionId> = self.lock().iter().filter_map(kept).collect();
        Ok(ids.into_iter().map(|id| Row { id, found: self.summarize(vocabulary, id) }).collect())
    }

    async fn remove(&self, id: SessionId) -> Result<(), RemoveError> {
        let mut kept = self.lock();
        match kept.get(&id) {
            Some(found) if found.leased => Err(Busy { id, holder: Some(std::process::id()) }.into()),
            Some(_) => {
                kept.remove(&id);
                Ok(())
            }
            None => Err(NotFound { id, place: self.place(id) }.into()),
        }
    }

    fn place(&self, id: SessionId) -> String {
        format!("memory:{id}")
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryStore({} sessions)", self.lock().len())
    }
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, log: &Snapshot) -> Result<(), FlushError> {
        let mut written = self.lock();
        if written.events.is_some_and(|events| events >= log.len()) {
            return Ok(());
        }
        if !written.leased {
            return Err(FlushError { message: "it was let go of before".into(), full: false });
        }
        let mut lines = Vec::new();
        if written.events.is_none() {
            serde_json::to_writer(&mut lines, &**log.header()).expect("a header serializes to memory");
            lines.push(b'\n');
        }
        let from = written.events.unwrap_or(0);
        for event in log.events_from(from) {
            event.write(&mut lines);
            lines.push(b'\n');
        }
        written.events = Some(from.max(log.len()));
        let mut kept = self.store.lock();
        let kept = kept.entry(self.session).or_default();
        kept.text.push_str(std::str::from_utf8(&lines).expect("JSON is UTF-8"));
        kept.modified = log.events().last().map_or(log.header().created_at(), |event| event.time());
        Ok(())
    }

    fn let_go(&self) {
        if std::mem::replace(&mut self.lock().leased, false) {
            self.store.unlease(self.session);
        }
    }
}

impl Backing for Memory {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        let result = self.write(&log);
        Box::pin(std::future::ready(result))
    }

    fn close(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        let untouched = log.is_empty() && self.lock().events.is_none();
        let result = if untouched { Ok(()) } else { self.write(&log) };
        if result.is_ok() {
            self.let_go();
        }
        Box::pin(std::future::ready(result))
    }

    fn discard(&self) -> Boxed<'static, ()> {
        let mut written = self.lock();
        if written.leased && !self.opened {
            written.events = None;
            self.store.lock().entry(self.session).or_default().text.clear();
        }
        drop(written);
        self.let_go();
        Box::pin(std::future::ready(()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.let_go();
    }
}
