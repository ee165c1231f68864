use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use context::{CloseError, Ctx, Scope};
use session::{Delivery, InboxAccepted, InboxDiscarded, MessageId, Session, SessionId};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::inbox::PENDING_LIMIT;
use crate::sync::{Mutex, MutexGuard};
use crate::{Input, Profile, Receipt, SendError, TurnOutcome};

/// The owner of a live agent. Not `Clone`: whoever holds it disposes it, and dropping it begins to.
#[must_use = "dropping an agent disposes it"]
pub struct Agent {
    scope: Scope,
    agent: AgentRef,
    prompted: Option<Receipt>,
}

/// What everyone else sees of an agent.
#[derive(Clone)]
pub struct AgentRef(Arc<Inner>);

struct Inner {
    ctx: Ctx,
    session: Session,
    /// What the next request is made with.
    profile: Mutex<Arc<Profile>>,
    wake: Notify,
    idle: Notify,
    /// Never held while the log is appended to: whoever observes the log may ask the agent something.
    state: Mutex<State>,
    /// Who waits for the turn of which message. Locked inside the session's lock, never around it.
    waiters: Mutex<Vec<Waiter>>,
}

#[derive(Default)]
struct State {
    turn: Option<OpenTurn>,
    gone: bool,
    /// How many hold the log.
    holds: u32,
}

type Waiter = (MessageId, oneshot::Sender<TurnOutcome>);

#[derive(Clone)]
struct OpenTurn {
    cancelled: CancellationToken,
    cause: Option<Arc<str>>,
}

/// Keeps an agent that ends from letting go of its log: for work that ends with the agent and has last words there, see
/// [`Session::append_last_words`].
#[must_use = "dropping it lets go"]
pub struct LogHold(AgentRef);

/// What becomes of waiting messages when a turn is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbox {
    /// They stay, and run next.
    Keep,
    /// They are discarded.
    Discard,
}

impl Agent {
    pub(crate) fn new(scope: Scope, agent: AgentRef, prompted: Option<Receipt>) -> Self {
        Self { scope, agent, prompted }
    }

    /// The receipt of [`Spec::prompt`](crate::Spec::prompt), once.
    pub fn prompted(&mut self) -> Option<Receipt> {
        self.prompted.take()
    }

    /// Cancels the turn and returns when the agent is quiet, its log flushed and let go, and it is out of the registry.
    /// Idempotent.
    pub async fn dispose(&self) -> Result<(), CloseError> {
        self.scope.close().await
    }

    /// Disposes it, and has the end of the open turn name the cause. Waiting messages stay in the log, and run when it is
    /// resumed.
    pub async fn dispose_because(&self, cause: impl Into<Arc<str>>) -> Result<(), CloseError> {
        if let Some(turn) = &mut self.agent.lock().turn {
            turn.cause.get_or_insert_with(|| cause.into());
        }
        self.dispose().await
    }

    /// Leaves it to its owner: it lives until that closes.
    pub fn leave(self) -> AgentRef {
        self.scope.leave();
        self.agent
    }

    /// What one may hand to others.
    pub fn handle(&self) -> &AgentRef {
        &self.agent
    }
}

impl Drop for LogHold {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.holds -= 1;
        let is_last = state.holds == 0;
        drop(state);
        if is_last {
            self.0.0.idle.notify_waiters();
        }
    }
}

impl Deref for Agent {
    type Target = AgentRef;
    fn deref(&self) -> &AgentRef {
        &self.agent
    }
}

impl AgentRef {
    pub(crate) fn new(ctx: Ctx, session: Session, profile: Arc<Profile>) -> Self {
        let (wake, idle, state, waiters) = (Notify::new(), Notify::new(), Mutex::default(), Mutex::default());
        let profile = Mutex::new(profile);
        Self(Arc::new(Inner { ctx, session, profile, wake, idle, state, waiters }))
    }

    /// Its session's id, which is also the agent's.
    pub fn id(&self) -> SessionId {
        self.0.session.id()
    }

    /// Its log.
    pub fn session(&self) -> &Session {
        &self.0.session
    }

    /// The agent's own scope: what is registered there goes with it.
    pub fn ctx(&self) -> &Ctx {
        &self.0.ctx
    }

    /// Model and sampling.
    pub fn profile(&self) -> Arc<Profile> {
        self.0.profile.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has another model, or another sampling, from the next request on. Children that are there keep theirs.
    pub fn set_profile(&self, profile: impl Into<Arc<Profile>>) {
        let profile = profile.into();
        *self.0.profile.lock().unwrap_or_else(PoisonError::into_inner) = profile;
    }

    /// Keeps the log, which the agent lets go of last of all when its scope closes. Whoever holds it must end with that.
    pub fn hold_log(&self) -> LogHold {
        self.lock().holds += 1;
        LogHold(self.clone())
    }

    /// Waits until nobody holds the log any more. Without a scope that closes nothing would end who does.
    pub(crate) async fn until_log_is_free(&self) {
        while self.0.ctx.cancelled().is_cancelled() {
            let mut changed = std::pin::pin!(self.0.idle.notified());
            changed.as_mut().enable();
            if self.lock().holds == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Sends a message that gets a turn of its own, after those before it. When this returns the log holds it; flush the
    /// session to make it durable.
    pub fn followup(&self, text: impl Into<Box<str>>) -> Result<Receipt, SendError> {
        self.send(Input::prompt(text))
    }

    /// Sends a message that is read at the next step of the open turn; without one, in a turn of its own.
    pub fn steer(&self, text: impl Into<Box<str>>) -> Result<Receipt, SendError> {
        self.send(Input { delivery: Delivery::Steer, ..Input::prompt(text) })
    }

    /// Sends a message that is read with whatever wakes the agent next, and wakes nobody itself.
    pub fn inject(&self, text: impl Into<Box<str>>) -> Result<Receipt, SendError> {
        self.send(Input { delivery: Delivery::Inject, ..Input::prompt(text) })
    }

    /// Sends a message of any kind.
    pub fn send(&self, input: Input) -> Result<Receipt, SendError> {
        input.check()?;
        if self.lock().gone {
            return Err(SendError::Gone);
        }
        if self.0.session.pending_len() >= PENDING_LIMIT {
            return Err(SendError::Full);
        }
        let Input { message, source, delivery } = input;
        let (done, outcome) = oneshot::channel();
        let accepted = |seq| {
            // Before anyone can claim it, so that no turn settles it unheard.
            self.waiters().push((MessageId(seq), done));
            InboxAccepted { id: MessageId(seq), delivery, message, source }
        };
        let id = MessageId(self.0.session.append_with(accepted).map_err(|_| SendError::Gone)?);
        self.0.wake.notify_one();
        Ok(Receipt { id, outcome })
    }

    /// Stops the open turn, if there is one; its end names the cause, and so do messages that are discarded. Returns
    /// whether there was one.
    pub fn cancel(&self, cause: impl Into<Arc<str>>, inbox: Inbox) -> bool {
        let cause = cause.into();
        match inbox {
            Inbox::Keep => {}
            // First: a turn that opens meanwhile begins with none of them, or is stopped below.
            Inbox::Discard => self.discard(&cause),
        }
        let mut state = self.lock();
        let Some(turn) = &mut state.turn else { return false };
        turn.cause.get_or_insert(cause);
        let cancelled = turn.cancelled.clone();
        drop(state);
        cancelled.cancel();
        true
    }

    fn discard(&self, cause: &Arc<str>) {
        let mut ids = Vec::new();
        let discarded = self.0.session.append_of_pending(|waiting| {
            ids.extend(waiting.iter().map(|waiting| waiting.id));
            (!ids.is_empty()).then(|| InboxDiscarded { ids: ids.clone(), cause: cause.clone() })
        });
        // A closed session has no inbox left to empty.
        if let Ok(Some(_)) = discarded {
            self.settle(&ids, &TurnOutcome::never(cause.clone()));
            self.0.idle.notify_waiters();
        }
    }

    /// Waits until no turn is open and nothing waits that would open one; at once if the agent is gone.
    pub async fn when_idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            if self.is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Whether no turn is open and nothing waits that would open one.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.gone || (state.turn.is_none() && !self.has_waker())
    }

    pub(crate) fn has_waker(&self) -> bool {
        self.0.session.has_waker()
    }

    pub(crate) async fn woken(&self) {
        self.0.wake.notified().await;
    }

    pub(crate) fn open_turn(&self) -> CancellationToken {
        let cancelled = self.0.ctx.cancelled().child_token();
        self.lock().turn = Some(OpenTurn { cancelled: cancelled.clone(), cause: None });
        cancelled
    }

    /// Why the open turn was cancelled, if somebody said so.
    pub(crate) fn cancel_cause(&self) -> Option<Arc<str>> {
        self.lock().turn.as_ref()?.cause.clone()
    }

    pub(crate) fn close_turn(&self, ids: &[MessageId], outcome: &TurnOutcome) {
        self.lock().turn = None;
        self.settle(ids, outcome);
        self.0.idle.notify_waiters();
    }

    /// Takes back a turn that turned out to have nothing to begin with.
    pub(crate) fn withdraw_turn(&self) {
        self.lock().turn = None;
        self.0.idle.notify_waiters();
    }

    fn settle(&self, ids: &[MessageId], outcome: &TurnOutcome) {
        let settled: Vec<Waiter> = self.waiters().extract_if(.., |(id, _)| ids.contains(id)).collect();
        for (_, waiter) in settled {
            // Nobody has to wait for an outcome.
            let _ = waiter.send(outcome.clone());
        }
    }

    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.gone = true;
        state.turn = None;
        drop(state);
        // Before the waiters are let go: what is accepted until then is waited for by one of them.
        self.0.session.close();
        let waiters = std::mem::take(&mut *self.waiters());
        drop(waiters);
        self.0.idle.notify_waiters();
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Waiter>> {
        self.0.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for AgentRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AgentRef({})", self.id())
    }
}
