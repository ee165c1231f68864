use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent::{AgentRef, CreateError};
use context::{Boxed, Ctx, NameTaken, Realm, Registration, Registry, Scope, Stop};
use futures_util::FutureExt as _;
use sandbox::one_line;
use session::{Delegation, SessionId, Snapshot};
use tokio::sync::{SetOnce, oneshot};
use tokio_util::sync::CancellationToken;

use crate::budget::{Place, Trees};
use crate::run::OwnedScope;
use crate::{
    ChildEnded, ChildStarted, Descriptor, Limits, Request, Run, RunId, RunResult, Start, StartError, Started, Starting,
    StopReason, SubagentProvider, filter,
};

/// The named providers, and the one way to start a child with them.
pub struct Subagents {
    realm: Realm,
    providers: Registry<dyn SubagentProvider>,
    trees: Arc<Trees>,
    runs: AtomicU64,
}

impl Subagents {
    /// Runs are announced in `home`'s realm, and children look it up.
    pub fn new(home: &Ctx, limits: Limits) -> Arc<Self> {
        let realm = home.realm().clone();
        let trees = Arc::new(Trees::new(limits));
        Arc::new(Self { realm, providers: Registry::default(), trees, runs: AtomicU64::new(1) })
    }

    /// Adds a provider under a name of its own. Dropping the registration blocks new starts and leaves runs alone.
    pub fn register(
        &self,
        name: impl Into<Arc<str>>,
        provider: Arc<dyn SubagentProvider>,
    ) -> Result<Registration, NameTaken> {
        self.providers.register(name, provider)
    }

    /// The providers, in order of registration; it also tells of changes.
    pub fn providers(&self) -> &Registry<dyn SubagentProvider> {
        &self.providers
    }

    /// What the deployment allows.
    pub fn limits(&self) -> Limits {
        self.trees.limits()
    }

    pub(crate) fn trees(&self) -> &Arc<Trees> {
        &self.trees
    }

    /// Captures the parent's scope *now*, then starts a child in a task that the parent's scope owns. A parent that
    /// switches after this returns does not change the child, polled or not.
    pub fn start(&self, parent: &AgentRef, provider: &str, request: Request) -> Starting {
        let delegation = Delegation::capture(parent.session());
        let launched = delegation
            .map_err(StartError::from)
            .and_then(|delegation| self.launch(parent, provider, delegation, request));
        Starting(launched.map_err(Some))
    }

    fn launch(
        &self,
        parent: &AgentRef,
        name: &str,
        delegation: Delegation,
        mut request: Request,
    ) -> Result<oneshot::Receiver<Result<Run, StartError>>, StartError> {
        let name: Arc<str> = name.into();
        let provider = self.providers.get(&name).ok_or_else(|| self.unknown(&name))?;
        let offers = catch_unwind(AssertUnwindSafe(|| provider.offers()))
            .map_err(|_| StartError::Panicked { provider: name.clone() })?;
        let asked = request.tool_filter.as_ref();
        request.tool_filter = filter::for_child(parent, delegation.parent(), asked, &self.realm)?;
        request.max_depth = depth_for_child(delegation.parent(), request.max_depth);
        if let Some(capability) = request.needs().find(|need| !offers.contains(need)) {
            return Err(StartError::Unsupported { provider: name, capability });
        }
        let limit = request.max_depth.unwrap_or(u32::MAX).min(self.limits().max_depth);
        if delegation.depth() > limit {
            return Err(StartError::TooDeep { depth: delegation.depth(), limit });
        }
        if let Some(model) = &request.model {
            model.adapter(&self.realm)?;
        }
        let place = self.trees.admit(parent, delegation.child()).map_err(|_| StartError::ParentClosing)??;
        let id = RunId(self.runs.fetch_add(1, Ordering::Relaxed));
        let (handed, receiver) = oneshot::channel();
        let launch = Launch { id, realm: self.realm.clone(), provider, name, parent: parent.clone(), place, handed };
        parent
            .ctx()
            .spawn("run", Stop::Join, launch.carry(Box::new((delegation, request))))
            .map_err(|_| StartError::ParentClosing)?;
        Ok(receiver)
    }

    fn unknown(&self, name: &Arc<str>) -> StartError {
        let known = self.providers.list().into_iter().map(|(name, _)| name.to_string()).collect();
        StartError::UnknownProvider { name: name.clone(), known }
    }
}

/// How deep the children of a child may stand: what was asked for it, within what its parent's log says the parent was
/// held to.
fn depth_for_child(parent: &Snapshot, asked: Option<u32>) -> Option<u32> {
    let held = parent.latest::<Descriptor>().and_then(|descriptor| descriptor.max_depth);
    asked.into_iter().chain(held).min()
}

/// A start on its way to a run.
struct Launch {
    id: RunId,
    realm: Realm,
    provider: Arc<dyn SubagentProvider>,
    name: Arc<str>,
    parent: AgentRef,
    place: Option<Arc<Place>>,
    handed: oneshot::Sender<Result<Run, StartError>>,
}

impl Launch {
    /// A run's own task: start, announce, hand over, wait for the end, announce it.
    ///
    /// The parent's scope owns it, and it makes the run's scope itself: what is newer closes first, so it must be the
    /// older of the two to be joined after it. Once that has closed nothing of the child is left, so a provider whose
    /// result never settles holds up nobody.
    async fn carry(self, asked: Box<(Delegation, Request)>) {
        // Boxed, so that a child which works does not hold the room of its start.
        if let Some(alive) = Box::pin(self.start(asked)).await {
            alive.live_on().await;
        }
    }

    async fn start(self, asked: Box<(Delegation, Request)>) -> Option<Box<Alive>> {
        let Self { id, realm, provider, name, parent, place, mut handed } = self;
        let Ok(scope) = parent.ctx().child_in("run", realm.clone()) else {
            drop(handed.send(Err(StartError::ParentClosing)));
            return None;
        };
        if let Some(place) = place.clone() {
            // A finished child is alive until it is disposed, and then nothing is left of it.
            let _ = scope.own(Registration::new(move || place.leave()));
        }
        let from = parent.id();
        let (delegation, request) = *asked;
        let (cancelled, label, call) = (request.cancelled.clone(), request.label.clone(), request.call.clone());
        let start = Start { ctx: Ctx::clone(&scope), run: id, provider: name.clone(), parent, delegation, request };
        let Started { child, result } = match begin(&*provider, start, &scope, &mut handed).await {
            Ok(started) => started,
            Err(error) => {
                scope.start_closing();
                scope.closed().await;
                drop(handed.send(Err(error)));
                return None;
            }
        };
        if let Some(place) = &place {
            place.lived();
        }
        realm.emit(&ChildStarted { run: id, provider: name.clone(), label, call, parent: from, child });
        let settled = Arc::new(SetOnce::new());
        let end = End { realm, run: id, provider: name, parent: from, child, settled, result: None };
        let scope = Arc::new(scope);
        let run = Run { id, child, scope: OwnedScope(scope.clone()), result: end.settled.clone() };
        drop(handed.send(Ok(run)));
        Some(Box::new(Alive { scope, cancelled, place, result, end }))
    }
}

/// A child that was announced.
struct Alive {
    scope: Arc<Scope>,
    cancelled: CancellationToken,
    place: Option<Arc<Place>>,
    result: Boxed<'static, RunResult>,
    end: End,
}

impl Alive {
    async fn live_on(mut self: Box<Self>) {
        let provider = self.end.provider.clone();
        let panicked = move |_| RunResult {
            message: Some(format!("`{provider}` panicked while its child ran").into()),
            ..RunResult::ended(StopReason::Error)
        };
        let result = AssertUnwindSafe(&mut self.result).catch_unwind();
        let result = result.map(|result| Box::new(result.unwrap_or_else(panicked)));
        let mut result = watch(&self.scope, &self.cancelled, result).await;
        result.message = result.message.map(|message| one_line(&message).to_string().into());
        if let (Some(place), None) = (&self.place, self.end.child) {
            place.spend(result.usage);
        }
        self.end.result = Some(result);
    }
}

/// Has the provider start a child. Once that is given up the run's scope closes, and until it has closed the provider
/// may still answer: a child that was published in the meantime is there, and must be announced.
async fn begin(
    provider: &dyn SubagentProvider,
    start: Start,
    scope: &Scope,
    handed: &mut oneshot::Sender<Result<Run, StartError>>,
) -> Result<Started, StartError> {
    let (name, cancelled) = (start.provider.clone(), start.request.cancelled.clone());
    if cancelled.is_cancelled() || handed.is_closed() {
        return Err(StartError::Cancelled);
    }
    // The call is inside, since it may panic as well as its future.
    let mut starting = std::pin::pin!(AssertUnwindSafe(async { provider.start(start).await }).catch_unwind());
    let why = tokio::select! {
        biased;
        started = &mut starting => return match started {
            // Before anybody has the run, only the parent can close its scope.
            Ok(Err(StartError::Create(CreateError::OwnerClosing))) => Err(StartError::ParentClosing),
            Ok(started) => started,
            Err(_) => Err(StartError::Panicked { provider: name }),
        },
        () = cancelled.cancelled() => StartError::Cancelled,
        () = handed.closed() => StartError::Cancelled,
        () = scope.cancelled().cancelled() => StartError::ParentClosing,
    };
    scope.start_closing();
    tokio::select! {
        biased;
        Ok(Ok(started)) = &mut starting => Ok(started),
        _ = scope.closed() => Err(why),
    }
}

/// Waits for a child's end, however it comes. A cancellation begins the closing and lets the child say its last word.
async fn watch(
    scope: &Scope,
    cancelled: &CancellationToken,
    result: impl Future<Output = Box<RunResult>>,
) -> Box<RunResult> {
    let mut result = std::pin::pin!(result);
    tokio::select! {
        biased;
        settled = &mut result => return settled,
        () = cancelled.cancelled() => scope.start_closing(),
        _ = scope.closed() => return Box::new(RunResult::ended(StopReason::Aborted)),
    }
    tokio::select! {
        biased;
        settled = &mut result => settled,
        _ = scope.closed() => Box::new(RunResult::ended(StopReason::Aborted)),
    }
}

/// Announces the end exactly once, whatever becomes of the task that holds it.
struct End {
    realm: Realm,
    run: RunId,
    provider: Arc<str>,
    parent: SessionId,
    child: Option<SessionId>,
    settled: Arc<SetOnce<RunResult>>,
    result: Option<Box<RunResult>>,
}

impl Drop for End {
    fn drop(&mut self) {
        let result = self.result.take().map_or_else(|| RunResult::ended(StopReason::Error), |result| *result);
        let Self { run, parent, child, .. } = *self;
        let provider = self.provider.clone();
        self.realm.emit(&ChildEnded { run, provider, parent, child, result: result.clone() });
        self.settled.set(result).expect("a run settles once");
    }
}
