//! Stores that fail, and what is left in one that does not.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context::Boxed;
use session::{Backing, FlushError, Session, SessionId, Sessions, Snapshot, Vocabulary};
use session_store::*;

/// Where a store fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fails {
    Create,
    Flush,
    Close,
    Nowhere,
}

/// Notes what it is asked.
#[derive(Clone)]
pub(crate) struct FakeStore {
    fails: Fails,
    asked: Arc<Mutex<Vec<&'static str>>>,
}

impl FakeStore {
    pub(crate) fn new(fails: Fails) -> Self {
        Self { fails, asked: Arc::default() }
    }

    /// Everything since the last call.
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn ask(&self, what: &'static str, fails: Fails) -> Boxed<'static, Result<(), FlushError>> {
        self.asked.lock().unwrap().push(what);
        let error = FlushError { message: "no space left on device".into(), full: true };
        let result = if self.fails == fails { Err(error) } else { Ok(()) };
        Box::pin(async { result })
    }
}

impl Backing for FakeStore {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.ask("flush", Fails::Flush)
    }

    fn close(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.ask("close", Fails::Close)
    }

    fn discard(&self) -> Boxed<'static, ()> {
        self.asked.lock().unwrap().push("discard");
        Box::pin(async {})
    }
}

#[async_trait]
impl SessionStore for FakeStore {
    async fn create(&self, session: &Session) -> Result<(), CreateError> {
        self.asked.lock().unwrap().push("create");
        if self.fails == Fails::Create {
            return Err(CreateError::Exists { place: self.place(session.id()) });
        }
        Ok(session.attach(Arc::new(self.clone()))?)
    }

    async fn open(&self, _: &Arc<Sessions>, _: SessionId) -> Result<Opened, OpenError> {
        unreachable!("agents open nothing")
    }

    async fn read(&self, _: &Arc<Vocabulary>, _: SessionId) -> Result<Reading, ReadError> {
        unreachable!("agents read nothing")
    }

    async fn summary(&self, _: &Arc<Vocabulary>, _: SessionId) -> Result<Summary, ReadError> {
        unreachable!("agents summarize nothing")
    }

    async fn list(&self, _: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError> {
        unreachable!("agents list nothing")
    }

    async fn remove(&self, _: SessionId) -> Result<(), RemoveError> {
        unreachable!("nobody here removes anything")
    }

    fn place(&self, _: SessionId) -> String {
        "fake".into()
    }
}

/// What is left of a session in a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    /// Someone may write it.
    Leased,
    /// The types of its events, and nobody writes it.
    Free(Vec<String>),
}

pub(crate) async fn left(store: &MemoryStore, sessions: &Arc<Sessions>, id: SessionId) -> Left {
    match store.open(sessions, id).await {
        Ok(opened) => Left::Free(crate::support::tags(&opened.session)),
        Err(OpenError::Busy(_)) => Left::Leased,
        Err(OpenError::NotFound(_)) => Left::Nothing,
        Err(other) => panic!("{other}"),
    }
}
