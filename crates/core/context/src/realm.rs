use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::chain::{Around, Chain, Next};
use crate::guard::call_each;
use crate::sync::{AtomicU64, RwLock};
use crate::{Boxed, Emitter, Listeners, Middleware, NameTaken, Registration, Registry};

type Slot = Arc<dyn Any + Send + Sync>;
pub(crate) type Observer<E> = dyn Fn(&E) + Send + Sync;

/// Where look-ups go: services, registries, listeners and middleware, here first and then in the next realm out.
#[derive(Clone)]
pub struct Realm(Arc<Inner>);

struct Inner {
    next: Option<Realm>,
    /// Grows with every change to what can be found here.
    version: AtomicU64,
    slots: RwLock<HashMap<TypeId, Slot>>,
}

/// This realm already has one. A nested realm may shadow it.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is already provided in this realm")]
pub struct AlreadyProvided(pub &'static str);

impl Realm {
    pub(crate) fn root() -> Self {
        Self::within(None)
    }

    /// A realm of one's own, whose look-ups continue in `self`.
    pub fn nested(&self) -> Self {
        Self::within(Some(self.clone()))
    }

    fn within(next: Option<Realm>) -> Self {
        Self(Arc::new(Inner { next, version: AtomicU64::new(0), slots: RwLock::default() }))
    }

    /// Publishes a service under its type, usually a `dyn Trait`. It is findable until the registration is dropped.
    pub fn provide<T: ?Sized + Send + Sync + 'static>(&self, service: Arc<T>) -> Result<Registration, AlreadyProvided> {
        let key = TypeId::of::<Arc<T>>();
        let mut slots = self.0.slots.write().unwrap_or_else(PoisonError::into_inner);
        if slots.contains_key(&key) {
            return Err(AlreadyProvided(std::any::type_name::<T>()));
        }
        slots.insert(key, Arc::new(service));
        drop(slots);
        self.changed();
        let inner = Arc::downgrade(&self.0);
        Ok(Registration::new(move || {
            if let Some(inner) = inner.upgrade() {
                let gone = inner.slots.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
                Realm(inner).changed();
                // Only now: what the service does as it goes may use the realm.
                drop(gone);
            }
        }))
    }

    /// The service of this type, from here or the nearest realm out that has one.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.outwards().find_map(|realm| Some((*realm.find::<Arc<T>>()?).clone()))
    }

    /// Registers `value` under a name that must be free in this realm. A nested realm may shadow it.
    pub fn register<T>(&self, name: impl Into<Arc<str>>, value: Arc<T>) -> Result<Registration, NameTaken>
    where
        T: ?Sized + Send + Sync + 'static,
    {
        let registered = self.registry::<T>().register(name, value)?;
        self.changed();
        Ok(self.noticed(registered))
    }

    /// The value of this type under `name`, from here or the nearest realm out that has one.
    pub fn named<T: ?Sized + Send + Sync + 'static>(&self, name: &str) -> Option<Arc<T>> {
        self.outwards().find_map(|realm| realm.find::<Registry<T>>()?.get(name))
    }

    /// Everything of this type that can be found from here: outermost realm first, in order of registration. A name
    /// registered further in takes the place of the one it shadows.
    pub fn all_named<T: ?Sized + Send + Sync + 'static>(&self) -> Vec<(Arc<str>, Arc<T>)> {
        let mut all: Vec<(Arc<str>, Arc<T>)> = Vec::new();
        let inwards: Vec<_> = self.outwards().filter_map(|realm| realm.find::<Registry<T>>()).collect();
        for registry in inwards.into_iter().rev() {
            for (name, value) in registry.list() {
                match all.iter_mut().find(|(taken, _)| *taken == name) {
                    Some(shadowed) => shadowed.1 = value,
                    None => all.push((name, value)),
                }
            }
        }
        all
    }

    /// Everything of this type that is registered here or further out, also what is shadowed: this realm first, each in
    /// order of registration. For what holds however it is named.
    pub fn all_registered<T: ?Sized + Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        let registries = self.outwards().filter_map(|realm| realm.find::<Registry<T>>());
        registries.flat_map(|registry| registry.list()).map(|(_, value)| value).collect()
    }

    /// This realm's own registry of a type, for those who watch its changes. Names registered through it directly are
    /// found, but only [`Realm::register`] refreshes what agents have cached.
    pub fn registry<T: ?Sized + Send + Sync + 'static>(&self) -> Arc<Registry<T>> {
        self.slot::<Registry<T>>()
    }

    /// Grows whenever something that can be found from here changes. Equal numbers: nothing did.
    pub fn version(&self) -> u64 {
        self.outwards().map(|realm| realm.0.version.load(Ordering::Acquire)).fold(0, u64::wrapping_add)
    }

    /// Listens to `E` emitted in this realm or in one nested in it.
    pub fn on<E: 'static>(&self, listener: impl Fn(&E) + Send + Sync + 'static) -> Registration {
        let added = self.slot::<Listeners<Observer<E>>>().add(Arc::new(listener));
        self.changed();
        self.noticed(added)
    }

    /// Tells every listener, innermost realm first, in order of registration. For an event that is emitted often,
    /// keep an [`Emitter`].
    pub fn emit<E: 'static>(&self, event: &E) {
        call_each(&self.observers::<E>(), |listener| listener(event));
    }

    /// A standing way to emit, which looks listeners up again only when some were added or removed.
    pub fn emitter<E: 'static>(&self) -> Emitter<E> {
        Emitter::new(self.clone())
    }

    /// Wraps a chain that runs in this realm or in one nested in it.
    pub fn around<C: Chain>(&self, middleware: impl Around<C>) -> Registration {
        let added = self.slot::<Listeners<dyn Around<C>>>().add(Arc::new(middleware));
        self.changed();
        self.noticed(added)
    }

    /// Runs `end` inside every layer of `C`, outermost realm first. With none, nothing is boxed.
    pub async fn through<C: Chain, F, Fut>(&self, input: C::Input, end: F) -> C::Output
    where
        F: Fn(C::Input) -> Fut + Send + Sync,
        Fut: Future<Output = C::Output> + Send,
    {
        let layers = self.layers::<C>();
        if layers.is_empty() {
            return end(input).await;
        }
        let end = |input| -> Boxed<'_, C::Output> { Box::pin(end(input)) };
        Next::over(&layers, &end).run(input).await
    }

    /// A standing way to run a chain, which looks its layers up again only when some were added or removed.
    pub fn middleware<C: Chain>(&self) -> Middleware<C> {
        Middleware::new(self.clone())
    }

    pub(crate) fn observers<E: 'static>(&self) -> Vec<Arc<Observer<E>>> {
        self.outwards().filter_map(|realm| realm.find::<Listeners<Observer<E>>>()).flat_map(|list| list.all()).collect()
    }

    pub(crate) fn layers<C: Chain>(&self) -> Vec<Arc<dyn Around<C>>> {
        let mut layers = Vec::new();
        for realm in self.outwards() {
            if let Some(list) = realm.find::<Listeners<dyn Around<C>>>() {
                layers.splice(0..0, list.all());
            }
        }
        layers
    }

    /// Withdraws, then lets caches know.
    fn noticed(&self, registration: Registration) -> Registration {
        let inner = Arc::downgrade(&self.0);
        Registration::new(move || {
            drop(registration);
            if let Some(inner) = inner.upgrade() {
                Realm(inner).changed();
            }
        })
    }

    fn changed(&self) {
        self.0.version.fetch_add(1, Ordering::AcqRel);
    }

    fn outwards(&self) -> impl Iterator<Item = &Realm> {
        std::iter::successors(Some(self), |realm| realm.0.next.as_ref())
    }

    fn find<S: Any + Send + Sync>(&self) -> Option<Arc<S>> {
        let slots = self.0.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(&TypeId::of::<S>()).cloned()?.downcast().ok()
    }

    fn slot<S: Any + Send + Sync + Default>(&self) -> Arc<S> {
        let mut slots = self.0.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(TypeId::of::<S>()).or_insert_with(|| Arc::new(S::default()));
        slot.clone().downcast().expect("a slot is keyed by its own type")
    }
}
