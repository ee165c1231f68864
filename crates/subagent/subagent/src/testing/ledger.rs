//! The store of the suite: it takes its time, can be told to fail, and knows what it holds.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use context::Boxed;
use session::{Backing, FlushError, Session, SessionId, Sessions, Snapshot, Vocabulary};
use session_store::{
    CreateError, ListError, NotFound, OpenError, Opened, ReadError, Reading, RemoveError, Row, SessionStore, Summary,
};

/// How often a store of this kind is polled before it has done what it was asked.
const POLLS: usize = 2;

/// Keeps logs in memory. Clones are the same store.
#[derive(Clone, Default)]
pub(super) struct Ledger(Arc<Inner>);

#[derive(Default)]
struct Inner {
    kept: Mutex<BTreeMap<SessionId, Kept>>,
    children_fail: AtomicBool,
}

#[derive(Default)]
struct Kept {
    held: bool,
    first: Option<Snapshot>,
    last: Option<Snapshot>,
}

impl Ledger {
    /// The sessions that nobody else may write, since somebody has not let go of them.
    pub(super) fn held(&self) -> Vec<SessionId> {
        self.lock().iter().filter(|(_, kept)| kept.held).map(|(id, _)| *id).collect()
    }

    /// The sessions of which there is something on the disk.
    pub(super) fn kept(&self) -> Vec<SessionId> {
        self.lock().iter().filter(|(_, kept)| kept.last.is_some()).map(|(id, _)| *id).collect()
    }

    /// The first batch of a log that became durable.
    pub(super) fn first(&self, id: SessionId) -> Option<Snapshot> {
        self.lock().get(&id)?.first.clone()
    }

    /// Everything of a log that is durable.
    pub(super) fn log(&self, id: SessionId) -> Option<Snapshot> {
        self.lock().get(&id)?.last.clone()
    }

    /// From now on, whether logs of children cannot be made durable.
    pub(super) fn fail_children(&self, fail: bool) {
        self.0.children_fail.store(fail, Ordering::SeqCst);
    }

    async fn write(self, log: Snapshot) -> Result<(), FlushError> {
        take_time().await;
        if self.0.children_fail.load(Ordering::SeqCst) && log.header().lineage().is_some() {
            return Err(FlushError { message: "the contract's disk is full".into(), full: true });
        }
        let mut all = self.lock();
        let kept = all.entry(log.header().id()).or_default();
        kept.first.get_or_insert_with(|| log.clone());
        if kept.last.as_ref().is_none_or(|last| last.len() < log.len()) {
            kept.last = Some(log);
        }
        Ok(())
    }

    fn let_go(&self, id: SessionId) {
        let mut all = self.lock();
        if let Some(kept) = all.get_mut(&id) {
            kept.held = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Kept>> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn take_time() {
    for _ in 0..POLLS {
        tokio::task::yield_now().await;
    }
}

#[async_trait]
impl SessionStore for Ledger {
    async fn create(&self, session: &Session) -> Result<(), CreateError> {
        take_time().await;
        self.lock().entry(session.id()).or_default().held = true;
        Ok(session.attach(Arc::new(Page(self.clone(), session.id())))?)
    }

    async fn open(&self, _: &Arc<Sessions>, id: SessionId) -> Result<Opened, OpenError> {
        Err(NotFound { id, place: self.place(id) }.into())
    }

    async fn remove(&self, id: SessionId) -> Result<(), RemoveError> {
        Err(NotFound { id, place: self.place(id) }.into())
    }

    async fn read(&self, _: &Arc<Vocabulary>, id: SessionId) -> Result<Reading, ReadError> {
        Err(NotFound { id, place: self.place(id) }.into())
    }

    async fn summary(&self, _: &Arc<Vocabulary>, id: SessionId) -> Result<Summary, ReadError> {
        Err(NotFound { id, place: self.place(id) }.into())
    }

    async fn list(&self, _: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError> {
        Ok(Vec::new())
    }

    fn place(&self, id: SessionId) -> String {
        format!("contract:{id}")
    }
}

/// Where one session is kept.
struct Page(Ledger, SessionId);

impl Backing for Page {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        Box::pin(self.0.clone().write(log))
    }

    fn close(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        let (ledger, id) = (self.0.clone(), self.1);
        Box::pin(async move {
            ledger.clone().write(log).await?;
            ledger.let_go(id);
            Ok(())
        })
    }

    fn discard(&self) -> Boxed<'static, ()> {
        let (ledger, id) = (self.0.clone(), self.1);
        Box::pin(async move {
            take_time().await;
            let gone = ledger.lock().remove(&id);
            drop(gone);
        })
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.let_go(self.1);
    }
}
