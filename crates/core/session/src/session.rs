use std::any::TypeId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};

use context::Registration;
use llm::Message;
use pvec::PVec;

use crate::backing::{Backing, FlushError};
use crate::inbox::Pending;
use crate::observe::Observers;
use crate::sync::{Mutex, MutexGuard};
use crate::{
    DamagedPayload, Delegation, Event, Header, InboxAccepted, InboxClaimed, InboxDiscarded, Payload, Seed, SessionId,
    Sessions, Snapshot, TurnReason, Typed, recovery,
};

/// How many events may pile up before a backing is told.
const HINT_EVERY: u64 = 512;

/// One log: its writer's and its readers' handle. Clones are the same session.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    house: Arc<Sessions>,
    header: Arc<Header>,
    first_live_seq: u64,
    state: Mutex<State>,
    /// Whether anybody observes, so that an append without observers looks no further.
    observed: AtomicBool,
    backing: OnceLock<Arc<dyn Backing>>,
}

pub(crate) struct State {
    pub(crate) log: Snapshot,
    takes: Takes,
    pending: Pending,
    pub(crate) observers: Observers,
}

/// What is appended still.
#[derive(Clone, Copy, PartialEq)]
enum Takes {
    Everything,
    LastWords,
    Nothing,
}

/// The session takes no more events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session is closed")]
pub struct Closed;

/// This session is kept somewhere already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session has a backing already")]
pub struct AlreadyBacked;

impl Session {
    /// The only way to a new session with a parent: uses the capture up, and stamps before anyone can see the child.
    pub fn delegated(delegation: Delegation, seed: Seed) -> Self {
        let (house, log) = delegation.into_child(seed);
        let first_live_seq = log.header.seed_length;
        Self::new(house, log, first_live_seq)
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.0.header.id
    }

    /// Its first line.
    pub fn header(&self) -> &Arc<Header> {
        &self.0.header
    }

    /// The house that it came from.
    pub fn house(&self) -> &Arc<Sessions> {
        &self.0.house
    }

    /// Events before it are replayed history; from it on they happen now.
    pub fn first_live_seq(&self) -> u64 {
        self.0.first_live_seq
    }

    /// Everything at this instant, O(1).
    pub fn snapshot(&self) -> Snapshot {
        self.lock().log.clone()
    }

    /// How many events there are, which is the `seq` of the next.
    pub fn len(&self) -> u64 {
        self.lock().log.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The last event of a type, O(1).
    pub fn latest<E: Payload>(&self) -> Option<Typed<E>> {
        self.lock().log.latest_event::<E>()?.typed()
    }

    /// What the model sees. O(1), but for the first time after a log was read.
    pub fn messages(&self) -> Result<PVec<Arc<Message>>, DamagedPayload> {
        let mut state = self.lock();
        state.log.project()?;
        Ok(state.log.projected())
    }

    /// Appends in memory, then tells the observers outside the lock. Returns the event's `seq`.
    pub fn append<E: Payload>(&self, payload: E) -> Result<u64, Closed> {
        self.append_with(|_| payload)
    }

    /// Appends what `make` makes of the `seq` that the event will have. `make` runs under the session's lock.
    pub fn append_with<E: Payload>(&self, make: impl FnOnce(u64) -> E) -> Result<u64, Closed> {
        let state = self.open()?;
        let payload = make(state.log.len());
        Ok(self.commit(state, payload))
    }

    /// Appends what `settle` makes of the messages that wait, oldest first, if it makes anything: nobody settles one of
    /// them between the look and the append. `settle` runs under the session's lock.
    pub fn append_of_pending<E: Payload>(
        &self,
        settle: impl FnOnce(Vec<Typed<InboxAccepted>>) -> Option<E>,
    ) -> Result<Option<u64>, Closed> {
        let state = self.open()?;
        let payload = settle(state.pending.all().cloned().collect());
        Ok(payload.map(|payload| self.commit(state, payload)))
    }

    /// Appends to a closed session too, until it is let go of: for work that ends with whoever drove it, and whose end is
    /// to be in its log.
    pub fn append_last_words<E: Payload>(&self, payload: E) -> Result<u64, Closed> {
        let state = self.lock();
        match state.takes {
            Takes::Everything | Takes::LastWords => Ok(self.commit(state, payload)),
            Takes::Nothing => Err(Closed),
        }
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, Closed> {
        let state = self.lock();
        match state.takes {
            Takes::Everything => Ok(state),
            Takes::LastWords | Takes::Nothing => Err(Closed),
        }
    }

    fn commit<'a, E: Payload>(&'a self, mut state: MutexGuard<'a, State>, payload: E) -> u64 {
        let seq = state.log.len();
        let event = Event::live(seq, self.0.house.now(), payload);
        if is_inbox::<E>() {
            state.pending.note(&event);
        }
        state.log.push(event);
        if seq % HINT_EVERY == HINT_EVERY - 1
            && let Some(backing) = self.0.backing.get()
        {
            let log = state.log.clone();
            drop(state);
            backing.hint(&log);
            state = self.lock();
        }
        if self.0.observed.load(Ordering::Relaxed) {
            crate::observe::tell(self, state);
        }
        seq
    }

    /// Messages that were accepted and neither claimed nor discarded, oldest first. What a fork copied is not among
    /// them: it is its parent's history.
    pub fn pending(&self) -> Vec<Typed<InboxAccepted>> {
        self.lock().pending.all().cloned().collect()
    }

    /// Whether a message waits that opens a turn, O(1).
    pub fn has_waker(&self) -> bool {
        self.lock().pending.has_waker()
    }

    /// How many messages wait.
    pub fn pending_len(&self) -> usize {
        self.lock().pending.len()
    }

    /// Tells `observer` of every event from `from` on, in order and each once: those already there before this returns
    /// or soon after, the others as they are appended. What an observer appends is told after what it was told about,
    /// never inside it. One that panics is reported and goes on being told.
    pub fn observe(&self, from: u64, observer: impl Fn(&Event) + Send + Sync + 'static) -> Registration {
        let mut state = self.lock();
        let id = state.observers.add(from, Arc::new(observer));
        self.0.observed.store(true, Ordering::Relaxed);
        crate::observe::tell(self, state);
        let session = Arc::downgrade(&self.0);
        Registration::new(move || {
            if let Some(inner) = session.upgrade() {
                let removed = Session(inner).lock().observers.remove(id);
                drop(removed);
            }
        })
    }

    /// Closes the open turn and whatever is open in it, so that the history stays valid for every model: calls without
    /// a result are answered with `why`. For whoever ran the turn and cannot go on with it.
    pub fn abandon_turn(&self, reason: TurnReason, why: &str) -> Result<(), Closed> {
        match recovery::closing_events(&self.snapshot(), &reason, why) {
            Ok(closing) => closing.append_to(self),
            Err(damaged) => {
                tracing::error!(session = %self.id(), %damaged, "an open turn cannot be closed");
                Ok(())
            }
        }
    }

    /// Keeps the session in `backing` from now on.
    pub fn attach(&self, backing: Arc<dyn Backing>) -> Result<(), AlreadyBacked> {
        self.0.backing.set(backing).map_err(|_| AlreadyBacked)
    }

    /// Resolves when everything appended before the call is on stable storage; at once if the session is kept nowhere.
    pub async fn flush(&self) -> Result<(), FlushError> {
        match self.0.backing.get() {
            Some(backing) => backing.flush(self.snapshot()).await,
            None => Ok(()),
        }
    }

    /// Refuses every append from now on, but last words.
    pub fn close(&self) {
        let mut state = self.lock();
        if state.takes == Takes::Everything {
            state.takes = Takes::LastWords;
        }
    }

    /// Closes it, flushes, and lets go of it, so that another process may have it.
    pub async fn release(&self) -> Result<(), FlushError> {
        self.lock().takes = Takes::Nothing;
        match self.0.backing.get() {
            Some(backing) => backing.close(self.snapshot()).await,
            None => Ok(()),
        }
    }

    /// Closes it and undoes what was kept of it, for one that was never announced.
    pub async fn discard(&self) {
        self.lock().takes = Takes::Nothing;
        if let Some(backing) = self.0.backing.get() {
            backing.discard().await;
        }
    }

    /// Whether it is kept anywhere.
    pub fn is_backed(&self) -> bool {
        self.0.backing.get().is_some()
    }

    pub(crate) fn new(house: Arc<Sessions>, log: Snapshot, first_live_seq: u64) -> Self {
        let header = log.header.clone();
        let pending = Pending::of(&log);
        let state = State { log, takes: Takes::Everything, pending, observers: Observers::default() };
        let (observed, backing) = (AtomicBool::new(false), OnceLock::new());
        Self(Arc::new(Inner { house, header, first_live_seq, state: Mutex::new(state), observed, backing }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.id())
    }
}

/// Decided when it is compiled, so that other events pay nothing.
fn is_inbox<E: Payload>() -> bool {
    let kind = TypeId::of::<E>();
    kind == TypeId::of::<InboxAccepted>()
        || kind == TypeId::of::<InboxClaimed>()
        || kind == TypeId::of::<InboxDiscarded>()
}
