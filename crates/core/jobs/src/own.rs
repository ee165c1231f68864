//! The jobs of one agent. They are a service of its own realm, so that only who holds that very agent finds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::job::Job;
use crate::{JobId, UnknownJob};

pub(crate) struct Own {
    kept: usize,
    listed: Mutex<Listed>,
    /// How many run or are about to, the telling of their end included.
    running: watch::Sender<usize>,
}

#[derive(Default)]
struct Listed {
    last: u64,
    jobs: BTreeMap<JobId, Arc<Job>>,
}

/// A place among those that run.
pub(crate) struct Place(Arc<Own>);

impl Own {
    pub(crate) fn new(kept: usize) -> Arc<Self> {
        Arc::new(Self { kept, listed: Mutex::default(), running: watch::Sender::new(0) })
    }

    /// A place, if fewer than `limit` are taken.
    pub(crate) fn take_place(self: &Arc<Self>, limit: usize) -> Option<Place> {
        let taken = self.running.send_if_modified(|running| {
            let is_free = *running < limit;
            *running += usize::from(is_free);
            is_free
        });
        taken.then(|| Place(self.clone()))
    }

    pub(crate) fn running(&self) -> usize {
        *self.running.borrow()
    }

    pub(crate) async fn settled(&self) {
        let mut running = self.running.subscribe();
        // Its sender is here.
        let _ = running.wait_for(|running| *running == 0).await;
    }

    pub(crate) fn add(&self, kind: Arc<str>, label: Arc<str>) -> Arc<Job> {
        let mut listed = self.lock();
        listed.last += 1;
        let id = JobId(listed.last);
        let job = Job::new(id, kind, label);
        listed.jobs.insert(id, job.clone());
        job
    }

    pub(crate) fn remove(&self, id: JobId) {
        let gone = self.lock().jobs.remove(&id);
        drop(gone);
    }

    /// Forgets the oldest of those that have ended, if there are too many.
    pub(crate) fn prune(&self) {
        let mut listed = self.lock();
        let ended: Vec<JobId> = listed.jobs.values().filter(|job| job.has_ended()).map(|job| job.id).collect();
        let too_many = ended.len().saturating_sub(self.kept);
        let gone: Vec<_> = ended.iter().take(too_many).filter_map(|id| listed.jobs.remove(id)).collect();
        drop(listed);
        drop(gone);
    }

    pub(crate) fn find(&self, id: JobId) -> Option<Arc<Job>> {
        self.lock().jobs.get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

/// That an owner has no job of this name, and which it has.
pub(crate) fn unknown(own: Option<&Own>, id: &str) -> UnknownJob {
    let known = own.map_or_else(Vec::new, |own| own.all().iter().map(|job| job.id).collect());
    UnknownJob { id: id.chars().take(64).collect(), known }
}
