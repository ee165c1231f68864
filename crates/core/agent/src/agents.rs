use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use context::{BoxError, Closing, Ctx, Realm, Registration, Scope, Stop};
use futures_util::FutureExt as _;
use llm::{Route, Sampling};
use session::{FlushError, Session, SessionId};
use session_store::SessionStore;
use tokio::sync::oneshot;

use crate::sync::{AtomicBool, Mutex, MutexGuard};
use crate::{Agent, AgentDriver, AgentRef, Driven, Input, Receipt, SendError};

/// Creates agents and knows the live ones.
pub struct Agents {
    home: Ctx,
    live: Arc<LiveAgents>,
}

/// What an agent is made of.
pub struct Spec {
    /// Its log.
    pub session: Session,
    /// Model and sampling. A child that is asked for nothing else shares its parent's.
    pub profile: Arc<Profile>,
    /// Steps of its own, after those that the app has for every agent.
    pub setup: Vec<Arc<dyn AgentSetup>>,
    /// A message that it has before anyone can see it, made durable together with its first events.
    pub prompt: Option<Input>,
}

/// Model and sampling of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Which model serves.
    pub route: Route,
    /// How it should answer.
    pub sampling: Sampling,
}

/// Prepares an agent before anyone can see it. An app's are registered by name with
/// `ctx.register::<dyn AgentSetup>(name, setup)` and run in order of registration.
#[async_trait]
pub trait AgentSetup: Send + Sync {
    /// Registers in `agent.ctx()`, or appends to the log. An error rolls the creation back.
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError>;
}

/// Why an agent was not created. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The owner closed first.
    #[error("the owner is closing")]
    OwnerClosing,
    /// A step of the set-up failed.
    #[error("the agent could not be set up: {0}")]
    Setup(#[source] BoxError),
    /// The same session is live already.
    #[error("an agent for this session is live")]
    AlreadyLive,
    /// The app has no [`AgentDriver`].
    #[error("no agent driver is provided: the composition lacks the agent loop")]
    NoDriver,
    /// The session could not be kept.
    #[error("the session cannot be kept: {0}")]
    Store(#[from] session_store::CreateError),
    /// The first events could not be made durable.
    #[error(transparent)]
    Flush(#[from] FlushError),
    /// The prompt was not taken on.
    #[error(transparent)]
    Prompt(#[from] SendError),
    /// The set-up, or an observer of it, panicked.
    #[error("the set-up of the agent panicked")]
    Panicked,
}

/// An agent can be seen from now on. Emitted in the app's realm, before its first turn.
#[derive(Clone, Debug)]
pub struct AgentPublished(pub AgentRef);

/// An agent can no longer be seen. Emitted in the app's realm, once for every one that was published.
#[derive(Clone, Copy, Debug)]
pub struct AgentGone(pub SessionId);

impl Spec {
    /// An agent without set-up of its own.
    pub fn new(session: Session, profile: impl Into<Arc<Profile>>) -> Self {
        Self { session, profile: profile.into(), setup: Vec::new(), prompt: None }
    }
}

impl Profile {
    /// A model with its own sampling.
    pub fn of(route: Route) -> Self {
        Self { route, sampling: Sampling::default() }
    }
}

impl From<Closing> for CreateError {
    fn from(_: Closing) -> Self {
        Self::OwnerClosing
    }
}

impl Agents {
    /// Agents look `home`'s realm up, whoever owns them.
    pub fn new(home: &Ctx) -> Arc<Self> {
        Arc::new(Self { home: home.clone(), live: Arc::default() })
    }

    /// The live agent of a session.
    pub fn get(&self, id: SessionId) -> Option<AgentRef> {
        lock(&self.live).get(&id)?.agent().cloned()
    }

    /// Every live agent, in the order in which their sessions were made.
    pub fn list(&self) -> Vec<AgentRef> {
        lock(&self.live).values().filter_map(Place::agent).cloned().collect()
    }

    /// Where agents look things up.
    pub fn realm(&self) -> &Realm {
        self.home.realm()
    }

    /// Creates an agent that `owner` closes: all of it, or nothing that anyone has seen. Where a store is provided, the
    /// session is kept there, and its first events are durable before anyone can see the agent.
    ///
    /// The work runs in the agent's own task from the call on. Dropping the future at any point rolls back: before the
    /// agent can be seen nothing is left of it; after that the task finds nobody to hand the [`Agent`] to, and a dropped
    /// `Agent` closes its scope.
    pub fn create(&self, owner: &Ctx, spec: Spec) -> impl Future<Output = Result<Agent, CreateError>> + Send + use<> {
        let begun = self.begin(owner, spec);
        async move {
            let (ctx, created) = begun?;
            match created.await.unwrap_or(Err(CreateError::Panicked)) {
                Ok(agent) => Ok(agent),
                Err(error) => {
                    ctx.closed().await;
                    Err(error)
                }
            }
        }
    }

    fn begin(&self, owner: &Ctx, spec: Spec) -> Result<(Ctx, Created), CreateError> {
        let scope = owner.child_in("agent", self.home.realm().nested())?;
        let driver = self.home.get::<dyn AgentDriver>().ok_or(CreateError::NoDriver)?;
        let place = take_place(&self.live, spec.session.id()).ok_or(CreateError::AlreadyLive)?;
        let (ctx, (created, receiver)) = (Ctx::clone(&scope), oneshot::channel());
        let (home, live) = (self.home.realm().clone(), self.live.clone());
        let birth = Birth { scope, spec, driver, home, live, place };
        ctx.spawn_fallible("agent", Stop::Join, birth.live_through(created))?;
        Ok((ctx, receiver))
    }
}

type Created = oneshot::Receiver<Result<Agent, CreateError>>;
type LiveAgents = Mutex<BTreeMap<SessionId, Place>>;

/// A session drives one agent at a time, from the call of its creation on.
enum Place {
    /// For one that nobody can see yet.
    Taken,
    Live(AgentRef),
}

impl Place {
    fn agent(&self) -> Option<&AgentRef> {
        match self {
            Self::Taken => None,
            Self::Live(agent) => Some(agent),
        }
    }
}

/// Everything that the agent's task begins with.
struct Birth {
    scope: Scope,
    spec: Spec,
    driver: Arc<dyn AgentDriver>,
    home: Realm,
    live: Arc<LiveAgents>,
    place: Registration,
}

impl Birth {
    /// The agent's task: set up, publish, hand over, then turn after turn.
    async fn live_through(self, mut created: oneshot::Sender<Result<Agent, CreateError>>) -> Result<(), BoxError> {
        let Self { scope, spec: Spec { session, profile, setup, prompt }, driver, home, live, place } = self;
        let agent = AgentRef::new(Ctx::clone(&scope), session, profile);
        // To its end, whoever gives up meanwhile: only a session that is kept can be discarded.
        let keeping = AssertUnwindSafe(keep(&agent, &home)).catch_unwind().await;
        let preparing = AssertUnwindSafe(async {
            keeping.unwrap_or(Err(CreateError::Panicked))?;
            prepare(&agent, &setup, prompt, &home).await
        })
        .catch_unwind();
        let prepared = tokio::select! {
            biased;
            () = scope.cancelled().cancelled() => Err(CreateError::OwnerClosing),
            // Nobody waits for it any more, and so nobody hears of this.
            () = created.closed() => Err(CreateError::OwnerClosing),
            prepared = preparing => prepared.unwrap_or(Err(CreateError::Panicked)),
        };
        let published = prepared.and_then(|receipt| publish(&agent, &home, &live).map(|()| receipt));
        match published {
            Ok(receipt) => drop(created.send(Ok(Agent::new(scope, agent.clone(), receipt)))),
            Err(error) => {
                agent.end();
                agent.session().discard().await;
                // The scope first: whoever hears of the failure finds nothing left.
                drop(scope);
                drop(created.send(Err(error)));
                return Ok(());
            }
        }
        let (session, ended) = (agent.session().clone(), agent.clone());
        // The call is inside, since it may panic as well as its future.
        let driving = async { driver.drive(Driven::new(agent)).await };
        let driven = AssertUnwindSafe(driving).catch_unwind().await;
        ended.until_log_is_free().await;
        let released = session.release().await;
        drop(place);
        match (driven, released) {
            (Ok(()), released) => Ok(released?),
            (Err(_), Ok(())) => Err("the agent's driver panicked".into()),
            (Err(_), Err(error)) => Err(format!("the agent's driver panicked, and {error}").into()),
        }
    }
}

/// Leases the session where sessions are kept.
async fn keep(agent: &AgentRef, home: &Realm) -> Result<(), CreateError> {
    if let Some(store) = home.get::<dyn SessionStore>()
        && !agent.session().is_backed()
    {
        store.create(agent.session()).await?;
    }
    Ok(())
}

/// Everything else that may fail, seen by nobody.
async fn prepare(
    agent: &AgentRef,
    setup: &[Arc<dyn AgentSetup>],
    prompt: Option<Input>,
    home: &Realm,
) -> Result<Option<Receipt>, CreateError> {
    for (_, step) in home.all_named::<dyn AgentSetup>() {
        step.set_up(agent).await.map_err(CreateError::Setup)?;
    }
    for step in setup {
        step.set_up(agent).await.map_err(CreateError::Setup)?;
    }
    let receipt = prompt.map(|input| agent.send(input)).transpose()?;
    agent.session().flush().await?;
    Ok(receipt)
}

/// Shows the agent, until its scope closes. The scope takes it on first, so that one which closes refuses before anybody
/// has heard; of telling and withdrawing, which may overlap from then on, the later one says that it is gone.
fn publish(agent: &AgentRef, home: &Realm, live: &Arc<LiveAgents>) -> Result<(), CreateError> {
    let (id, one_is_done) = (agent.id(), Arc::new(AtomicBool::new(false)));
    let (withdrawn, gone, places) = (one_is_done.clone(), home.clone(), live.clone());
    agent.ctx().own(Registration::new(move || {
        // The place itself is free only once the log is let go of.
        let (seen, told) = {
            let mut places = lock(&places);
            let seen = places.get_mut(&id).map(|place| std::mem::replace(place, Place::Taken));
            (seen, withdrawn.swap(true, Ordering::AcqRel))
        };
        drop(seen);
        if told {
            gone.emit(&AgentGone(id));
        }
    }))?;
    {
        let mut places = lock(live);
        if let (false, Some(place)) = (one_is_done.load(Ordering::Acquire), places.get_mut(&id)) {
            *place = Place::Live(agent.clone());
        }
    }
    home.emit(&AgentPublished(agent.clone()));
    if one_is_done.swap(true, Ordering::AcqRel) {
        home.emit(&AgentGone(id));
    }
    Ok(())
}

fn take_place(live: &Arc<LiveAgents>, id: SessionId) -> Option<Registration> {
    match lock(live).entry(id) {
        Entry::Occupied(_) => return None,
        Entry::Vacant(free) => drop(free.insert(Place::Taken)),
    }
    let live = Arc::downgrade(live);
    Some(Registration::new(move || {
        if let Some(live) = live.upgrade() {
            let gone = lock(&live).remove(&id);
            drop(gone);
        }
    }))
}

fn lock(live: &LiveAgents) -> MutexGuard<'_, BTreeMap<SessionId, Place>> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}
