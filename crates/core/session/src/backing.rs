use std::sync::Arc;

use context::Boxed;

use crate::Snapshot;

/// Where a session's events are kept. A store makes one for each session that it keeps, and attaches it.
///
/// The log itself is the queue: a backing remembers how far it has written and is handed the log as it is.
pub trait Backing: Send + Sync {
    /// There is much that is unwritten. A backing may begin to write; it must not block.
    fn hint(&self, log: &Snapshot);

    /// Resolves when everything in `log` is on stable storage. What could not be written is kept and tried again by the
    /// next flush.
    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>>;

    /// Flushes, then lets go of the session: another process may have it.
    fn close(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>>;

    /// Lets go of a session that was never announced, and leaves nothing of it behind. Whatever cannot be removed is
    /// reported to the operator; the session is gone either way.
    fn discard(&self) -> Boxed<'static, ()>;
}

/// Events could not be made durable. They are still in memory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the session's log could not be written: {message}")]
pub struct FlushError {
    /// What failed, in one line.
    pub message: Arc<str>,
    /// Whether the disk, or a quota on it, is full.
    pub full: bool,
}
