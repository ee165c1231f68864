//! Which logs stay open from one batch to the next: a few, however many sessions there are.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use session::SessionId;

use crate::disk::Blob;

/// How many files stay open in one store: with a thousand sessions, their locks leave no room for more under the usual
/// limit of 1,024.
pub(super) const MOST: usize = 4;
/// How many of them may hold bytes that are not on stable storage.
pub(super) const MOST_AHEAD: usize = 3;

/// Open files by their sessions, the one that was used longest ago first. Whoever works on one takes it out.
#[derive(Default)]
pub(crate) struct OpenFiles {
    idle: Mutex<Vec<Idle>>,
    ahead: Arc<AtomicUsize>,
}

struct Idle {
    session: SessionId,
    blob: Box<dyn Blob>,
    ahead: bool,
}

/// The right to leave bytes in a file that are not on stable storage. Such a file stays open, since the system tells of a
/// write-back that failed only to those who had the file open then.
pub(super) struct Ahead(Arc<AtomicUsize>);

impl OpenFiles {
    pub(super) fn take(&self, session: SessionId) -> Option<Box<dyn Blob>> {
        let mut idle = self.lock();
        let at = idle.iter().position(|idle| idle.session == session)?;
        Some(idle.remove(at).blob)
    }

    /// Keeps a file open until it is taken, or closed for others that are used more.
    pub(super) fn keep(&self, session: SessionId, blob: Box<dyn Blob>, ahead: bool) {
        let mut idle = self.lock();
        idle.push(Idle { session, blob, ahead });
        let longest = idle.iter().position(|idle| !idle.ahead).filter(|_| idle.len() > MOST);
        let closing = longest.map(|at| idle.remove(at));
        drop(idle);
        drop(closing);
    }

    /// `None` where that would be one file too many.
    pub(super) fn go_ahead(&self) -> Option<Ahead> {
        let more = |ahead| (ahead < MOST_AHEAD).then_some(ahead + 1);
        self.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Ahead(self.ahead.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are open, and how many of them hold bytes that are not on stable storage.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        (self.lock().len(), self.ahead.load(Ordering::Relaxed))
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
