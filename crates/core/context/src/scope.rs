use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::{SetOnce, oneshot};
use tokio_util::sync::CancellationToken;

use crate::close::Failure;
use crate::sync::{Handle, JoinHandle, Mutex, MutexGuard, task_local};
use crate::{AlreadyProvided, BoxError, Boxed, NameTaken, Realm, Registration};

task_local! {
    pub(crate) static OWNER: Ctx;
}

/// The owner of things. Not `Clone`: dropping it starts closing, [`Scope::close`] also waits.
pub struct Scope {
    pub(crate) ctx: Ctx,
    on_drop: OnDrop,
}

enum OnDrop {
    Close,
    Leave,
}

/// A handle on a scope: registers, spawns, looks up; cannot close.
#[derive(Clone)]
pub struct Ctx(pub(crate) Arc<Inner>);

/// How a task ends when its turn in the closing comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Dropped at its next await.
    Abort,
    /// Waited for: it watches [`Ctx::cancelled`], or ends because something newer has closed. One that outlives its
    /// grace of thirty seconds is aborted, and the closing reports it.
    Join,
}

/// The scope is closing and takes nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scope is closing")]
pub struct Closing;

/// Why a service was not provided.
#[derive(Debug, thiserror::Error)]
pub enum ProvideError {
    /// The scope is closing.
    #[error(transparent)]
    Closing(#[from] Closing),
    /// The scope's realm has a service of this type.
    #[error(transparent)]
    AlreadyProvided(#[from] AlreadyProvided),
}

/// Why a name was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The scope is closing.
    #[error(transparent)]
    Closing(#[from] Closing),
    /// The scope's realm has this name.
    #[error(transparent)]
    NameTaken(#[from] NameTaken),
}

pub(crate) struct Inner {
    pub(crate) name: &'static str,
    realm: Realm,
    pub(crate) parent: Option<(Ctx, u64)>,
    pub(crate) runtime: Handle,
    pub(crate) cancel: CancellationToken,
    state: Mutex<State>,
    pub(crate) closed: SetOnce<Arc<[Failure]>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) closing: bool,
    next: u64,
    pub(crate) entries: BTreeMap<u64, Entry>,
}

pub(crate) enum Entry {
    Guard(Registration),
    /// The handle comes as soon as there is one: nothing is spawned under the lock.
    Task(&'static str, Stop, oneshot::Receiver<Spawned>),
    Scope(Ctx),
    Hook(&'static str, Hook),
}

pub(crate) type Spawned = JoinHandle<Result<(), BoxError>>;
type Hook = Box<dyn FnOnce() -> Boxed<'static, Result<(), BoxError>> + Send>;

impl Scope {
    /// A scope with no owner and a realm of its own.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime. The runtime must have time enabled.
    pub fn root(name: &'static str) -> Self {
        Self::new(name, Realm::root(), None, Handle::current(), CancellationToken::new())
    }

    /// Leaves it to its owner, whose closing is now the only thing that closes it.
    pub fn leave(mut self) -> Ctx {
        self.on_drop = OnDrop::Leave;
        self.ctx.clone()
    }

    /// Begins the closing and does not wait for it: cancels the tree now, withdraws in the background.
    pub fn start_closing(&self) {
        self.begin_close();
    }

    fn new(
        name: &'static str,
        realm: Realm,
        parent: Option<(Ctx, u64)>,
        runtime: Handle,
        cancel: CancellationToken,
    ) -> Self {
        let (state, closed) = (Mutex::default(), SetOnce::new());
        let ctx = Ctx(Arc::new(Inner { name, realm, parent, runtime, cancel, state, closed }));
        Self { ctx, on_drop: OnDrop::Close }
    }
}

impl Deref for Scope {
    type Target = Ctx;
    fn deref(&self) -> &Ctx {
        &self.ctx
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        match self.on_drop {
            OnDrop::Close => self.begin_close(),
            OnDrop::Leave => {}
        }
    }
}

impl Ctx {
    /// The name it was made with, for reports.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Where its look-ups start.
    pub fn realm(&self) -> &Realm {
        &self.0.realm
    }

    /// The service of this type. See [`Realm::get`].
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.realm.get()
    }

    /// A scope that `self` owns, in the same realm.
    pub fn child(&self, name: &'static str) -> Result<Scope, Closing> {
        self.child_in(name, self.0.realm.clone())
    }

    /// A scope that `self` owns, which looks things up elsewhere.
    pub fn child_in(&self, name: &'static str, realm: Realm) -> Result<Scope, Closing> {
        self.insert(|id| {
            let parent = Some((self.clone(), id));
            let scope = Scope::new(name, realm, parent, self.0.runtime.clone(), self.0.cancel.child_token());
            (Entry::Scope(scope.ctx.clone()), scope)
        })
    }

    /// Hands a registration over: it is withdrawn when this scope closes, or now if it already does.
    pub fn own(&self, registration: Registration) -> Result<(), Closing> {
        self.insert(|_| (Entry::Guard(registration), ()))
    }

    /// Publishes a service in this scope's realm for as long as the scope lives. See [`Realm::provide`].
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&self, service: Arc<T>) -> Result<(), ProvideError> {
        if self.is_closing() {
            return Err(Closing.into());
        }
        Ok(self.own(self.0.realm.provide(service)?)?)
    }

    /// Registers a named value in this scope's realm for as long as the scope lives. See [`Realm::register`].
    pub fn register<T>(&self, name: impl Into<Arc<str>>, value: Arc<T>) -> Result<(), RegisterError>
    where
        T: ?Sized + Send + Sync + 'static,
    {
        if self.is_closing() {
            return Err(Closing.into());
        }
        Ok(self.own(self.0.realm.register(name, value)?)?)
    }

    /// Runs `hook` when its turn in the closing comes. It has the same grace as a task.
    pub fn on_close<F>(&self, what: &'static str, hook: impl FnOnce() -> F + Send + 'static) -> Result<(), Closing>
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.insert(|_| (Entry::Hook(what, Box::new(|| Box::pin(hook()))), ()))
    }

    /// Spawns a task that this scope owns and joins. One that panics is kept, and reported when the scope closes.
    pub fn spawn<F>(&self, what: &'static str, stop: Stop, task: F) -> Result<(), Closing>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn_fallible(what, stop, task.map(|()| Ok(())))
    }

    /// Like [`Ctx::spawn`], for a task that may fail: an error is kept, and reported when the scope closes.
    pub fn spawn_fallible<F>(&self, what: &'static str, stop: Stop, task: F) -> Result<(), Closing>
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.insert_task(what, stop, |id| {
            let ctx = self.clone();
            // A combinator and not an async block, which would hold the task's state twice.
            let task = task.inspect(move |ended| {
                if ended.is_ok() {
                    ctx.forget(id);
                }
            });
            self.0.runtime.spawn(OWNER.scope(self.clone(), task))
        })
    }

    /// Runs blocking work on a thread for such work. The scope joins it, within the usual grace, since
    /// nothing can cancel it; dropping the
    /// receiver only forgoes the answer. An answer that never comes means that the work panicked.
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<oneshot::Receiver<T>, Closing> {
        let (answer, receiver) = oneshot::channel();
        self.insert_task(what, Stop::Join, |id| {
            let ctx = self.clone();
            self.0.runtime.spawn_blocking(move || {
                drop(answer.send(OWNER.sync_scope(ctx.clone(), work)));
                ctx.forget(id);
                Ok(())
            })
        })?;
        Ok(receiver)
    }

    /// Fires for the whole tree at once, top down, as soon as a closing begins.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// Whether the closing has begun.
    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Waits until the scope is closed, without closing it. Says what failed.
    pub async fn closed(&self) -> Arc<[Failure]> {
        self.0.closed.wait().await.clone()
    }

    fn insert<T>(&self, make: impl FnOnce(u64) -> (Entry, T)) -> Result<T, Closing> {
        let mut state = self.lock();
        if state.closing {
            drop(state);
            return Err(Closing);
        }
        state.next += 1;
        let id = state.next;
        let (entry, made) = make(id);
        state.entries.insert(id, entry);
        Ok(made)
    }

    /// A place for a task and then the task. A runtime that has shut down drops what it is given at once, and what the
    /// task owned may lock this scope as it goes.
    fn insert_task(&self, what: &'static str, stop: Stop, spawn: impl FnOnce(u64) -> Spawned) -> Result<(), Closing> {
        let (hand_over, handle) = oneshot::channel();
        let id = self.insert(|id| (Entry::Task(what, stop, handle), id))?;
        // One that has ended already has left its place.
        drop(hand_over.send(spawn(id)));
        Ok(())
    }

    pub(crate) fn forget(&self, id: u64) {
        let gone = self.lock().entries.remove(&id);
        drop(gone);
    }

    /// Forgets a child that has closed. One that is closing itself takes the child off in its turn, with what failed.
    pub(crate) fn forget_closed(&self, id: u64) {
        let mut state = self.lock();
        let gone = if state.closing { None } else { state.entries.remove(&id) };
        drop(state);
        drop(gone);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn held(scope: &Ctx) -> usize {
        scope.lock().entries.len()
    }

    #[tokio::test]
    async fn what_has_ended_leaves_nothing_in_a_scope_that_goes_on() {
        let app = Scope::root("app");
        app.spawn("task", Stop::Join, async {}).unwrap();
        app.spawn_fallible("fallible", Stop::Abort, async { Ok(()) }).unwrap();
        let (release, held_up) = std::sync::mpsc::channel::<()>();
        drop(app.spawn_blocking("work", move || held_up.recv()).unwrap());
        let child = app.child("closed").unwrap();
        child.on_close("hook", async || Err("its closer is told".into())).unwrap();
        drop(app.child("dropped").unwrap());
        app.child("left").unwrap().leave();
        assert_eq!(held(&app), 5, "the dropped one had nothing to wait for");
        release.send(()).expect("the work waits for it");
        assert!(child.close().await.is_err());
        let ended = timeout(Duration::from_secs(60), async {
            while held(&app) > 1 {
                tokio::task::yield_now().await;
            }
        });
        ended.await.expect("only the scope that was left is still there");
        app.close().await.expect("what a child failed at was told to who closed it");
    }
}
