use std::sync::Arc;

use async_trait::async_trait;
use sandbox::one_line;
use session::{Header, SessionId, Vocabulary};
use session_store::{ListError, ReadError, Reading, Row, SessionStore};

/// Logs to read from. A [`Stored`] is enough; a program that can look at a damaged log's first line implements it itself.
#[async_trait]
pub trait Logs: Send + Sync {
    /// Every log, in order of their ids.
    async fn list(&self) -> Result<Vec<Row>, ListError>;

    /// A whole log.
    async fn read(&self, id: SessionId) -> Result<Reading, ReadError>;

    /// The first line of a log that [`Logs::list`] could not tell of, whatever is behind it; `None` if that cannot be read
    /// either, so that nobody knows whose child it is.
    async fn header(&self, id: SessionId) -> Option<Arc<Header>>;
}

/// The logs of a store.
#[derive(Clone)]
pub struct Stored<'a> {
    store: &'a dyn SessionStore,
    vocabulary: Arc<Vocabulary>,
}

impl<'a> Stored<'a> {
    /// Read with these words. They must hold the overrides, the asks, the reports and the descriptor: what is in none of them
    /// is not found.
    pub fn new(store: &'a dyn SessionStore, vocabulary: Arc<Vocabulary>) -> Self {
        Self { store, vocabulary }
    }
}

#[async_trait]
impl Logs for Stored<'_> {
    async fn list(&self) -> Result<Vec<Row>, ListError> {
        self.store.list(&self.vocabulary).await
    }

    async fn read(&self, id: SessionId) -> Result<Reading, ReadError> {
        self.store.read(&self.vocabulary, id).await
    }

    async fn header(&self, id: SessionId) -> Option<Arc<Header>> {
        Some(self.read(id).await.ok()?.decoded.log().header().clone())
    }
}

/// Why a log cannot be read, as one line: a damaged one may say anything.
pub(crate) fn diagnosis(error: &ReadError) -> String {
    one_line(&error.to_string()).to_string()
}
