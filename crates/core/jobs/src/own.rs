//! The jobs of one agent. They are a service of its own realm, so that only who holds that very agent finds them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use session::{Event, InboxClaimed, InboxDiscarded, MessageId, StepEnd};
use tokio::sync::watch;

use crate::job::Job;
use crate::notice::Telling;
use crate::{Config, JobId};

pub(crate) struct Own {
    config: Config,
    /// The last job of the log that was begun before this agent was.
    pub(crate) before: JobId,
    listed: Mutex<Listed>,
    pub(crate) telling: Mutex<Telling>,
    /// How many run or are about to, the telling of their end included.
    running: watch::Sender<usize>,
}

struct Listed {
    last: JobId,
    jobs: BTreeMap<JobId, Entry>,
}

struct Entry {
    job: Arc<Job>,
    heard: Heard,
    /// Whether the owner knows all that the job said: it was told, or it has read it.
    is_known: bool,
}

/// Whether the owner has heard of a job's end.
#[derive(Clone, Copy, PartialEq)]
enum Heard {
    No,
    /// A message says so that waits.
    Waits(MessageId),
    /// The step at hand is the first that shows it to the model.
    Now,
    Yes,
}

/// A place among those that run.
pub(crate) struct Place(Arc<Own>);

impl Own {
    pub(crate) fn new(config: Config, before: JobId) -> Arc<Self> {
        let (listed, telling) = (Mutex::new(Listed { last: before, jobs: BTreeMap::new() }), Mutex::default());
        Arc::new(Self { config, before, listed, telling, running: watch::Sender::new(0) })
    }

    /// A place, if fewer are taken than there may be.
    pub(crate) fn take_place(self: &Arc<Self>) -> Option<Place> {
        let taken = self.running.send_if_modified(|running| {
            let is_free = *running < self.config.running;
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
        let id = JobId(listed.last.0.saturating_add(1));
        listed.last = id;
        let job = Job::new(id, kind, label);
        listed.jobs.insert(id, Entry { job: job.clone(), heard: Heard::No, is_known: false });
        job
    }

    pub(crate) fn remove(&self, id: JobId) {
        let gone = self.lock().jobs.remove(&id);
        drop(gone);
    }

    /// Whether so many have ended that the owner has not heard of that no more may begin.
    pub(crate) fn is_behind(&self) -> bool {
        let listed = self.lock();
        let unheard = listed.jobs.values().filter(|entry| entry.heard != Heard::Yes && entry.job.has_ended());
        unheard.count() >= self.config.unheard
    }

    /// A message says that these have ended, and where `is_known` holds, all that they said.
    pub(crate) fn told(&self, told: &[(JobId, bool)], message: MessageId) {
        let mut listed = self.lock();
        for (id, is_known) in told {
            if let Some(entry) = listed.jobs.get_mut(id) {
                entry.heard = Heard::Waits(message);
                entry.is_known |= is_known;
            }
        }
    }

    /// Messages are in a step from now on.
    pub(crate) fn claimed(&self, is_claimed: impl Fn(MessageId) -> bool) {
        self.hear(|heard| matches!(heard, Heard::Waits(id) if is_claimed(id)).then_some(Heard::Now));
    }

    /// The owner knows of a job's end by itself.
    pub(crate) fn knows(&self, id: JobId) {
        if let Some(entry) = self.lock().jobs.get_mut(&id) {
            (entry.heard, entry.is_known) = (Heard::Yes, true);
        }
    }

    /// The owner has read what a job said, to its end.
    pub(crate) fn read(&self, id: JobId) {
        if let Some(entry) = self.lock().jobs.get_mut(&id) {
            entry.is_known = true;
        }
    }

    /// What an event of the owner's log says of its having heard.
    pub(crate) fn note(&self, event: &Event) {
        if let Some(InboxClaimed { ids }) = event.get() {
            self.claimed(|id| ids.contains(&id));
        } else if let Some(InboxDiscarded { ids, .. }) = event.get() {
            let is_gone = |heard| matches!(heard, Heard::Waits(id) if ids.contains(&id));
            self.hear(|heard| is_gone(heard).then_some(Heard::Yes));
            self.prune();
        } else if event.get::<StepEnd>().is_some() && self.hear(|heard| (heard == Heard::Now).then_some(Heard::Yes)) {
            self.prune();
        }
    }

    fn hear(&self, change: impl Fn(Heard) -> Option<Heard>) -> bool {
        let mut listed = self.lock();
        let mut changed = false;
        for entry in listed.jobs.values_mut() {
            if let Some(heard) = change(entry.heard) {
                entry.heard = heard;
                changed = true;
            }
        }
        changed
    }

    /// Forgets the oldest of those that the owner has heard of, if there are too many. Of those whose output it was only
    /// pointed to, more are kept.
    pub(crate) fn prune(&self) {
        let mut listed = self.lock();
        let mut gone = Vec::new();
        for (is_known, kept) in [(true, self.config.kept), (false, self.config.unheard)] {
            let heard = listed.jobs.iter().filter(|(_, entry)| entry.heard == Heard::Yes && entry.is_known == is_known);
            let heard: Vec<JobId> = heard.map(|(id, _)| *id).collect();
            let too_many = heard.len().saturating_sub(kept);
            gone.extend(heard[..too_many].iter().filter_map(|id| listed.jobs.remove(id)));
        }
        drop(listed);
        drop(gone);
    }

    pub(crate) fn find(&self, id: JobId) -> Option<Arc<Job>> {
        Some(self.lock().jobs.get(&id)?.job.clone())
    }

    /// The last one that was begun, whether or not it is still kept.
    pub(crate) fn last(&self) -> JobId {
        self.lock().last
    }

    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.lock().jobs.values().map(|entry| entry.job.clone()).collect()
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
