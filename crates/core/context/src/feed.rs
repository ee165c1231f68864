//! Listeners and middleware, resolved once and refreshed only when something changed.
//!
//! Emitting many times through a realm would take that realm's lock each time, and the app's realm is shared by every
//! agent. An emitter keeps what it found and compares one counter a realm, which no other emitter writes.

use std::sync::Arc;

use crate::chain::{Around, Chain, Next};
use crate::guard::call_each;
use crate::realm::Observer;
use crate::{Boxed, Realm};

/// A standing way to emit `E` in a realm. Made by [`Realm::emitter`]; cheap to use many times from one task.
pub struct Emitter<E: 'static>(Feed<Observer<E>>);

/// A standing way to run a chain in a realm. Made by [`Realm::middleware`].
pub struct Middleware<C: Chain>(Feed<dyn Around<C>>);

struct Feed<T: ?Sized> {
    realm: Realm,
    /// Sum of the versions of the realm and those around it: versions only grow, so the sum tells any change.
    seen: Option<u64>,
    found: Vec<Arc<T>>,
}

impl<E: 'static> Emitter<E> {
    pub(crate) fn new(realm: Realm) -> Self {
        Self(Feed { realm, seen: None, found: Vec::new() })
    }

    /// Whether anybody listens, so that a caller need not make what nobody hears.
    pub fn is_heard(&mut self) -> bool {
        !self.refreshed().is_empty()
    }

    /// Tells every listener, innermost realm first, in order of registration.
    pub fn emit(&mut self, event: &E) {
        call_each(self.refreshed(), |listener| listener(event));
    }

    fn refreshed(&mut self) -> &[Arc<Observer<E>>] {
        self.0.refresh(|realm| realm.observers())
    }
}

impl<C: Chain> Middleware<C> {
    pub(crate) fn new(realm: Realm) -> Self {
        Self(Feed { realm, seen: None, found: Vec::new() })
    }

    /// Runs `end` inside every layer, outermost realm first. With no layer, nothing is boxed.
    pub async fn through<F, Fut>(&mut self, input: C::Input, end: F) -> C::Output
    where
        F: Fn(C::Input) -> Fut + Send + Sync,
        Fut: Future<Output = C::Output> + Send,
    {
        let layers = self.0.refresh(|realm| realm.layers::<C>());
        if layers.is_empty() {
            return end(input).await;
        }
        let end = |input| -> Boxed<'_, C::Output> { Box::pin(end(input)) };
        Next::over(layers, &end).run(input).await
    }

    /// The layers there now, for work that needs them beside the emitter's owner.
    pub fn layers(&mut self) -> &[Arc<dyn Around<C>>] {
        self.0.refresh(|realm| realm.layers::<C>())
    }
}

impl<T: ?Sized> Feed<T> {
    fn refresh(&mut self, find: impl FnOnce(&Realm) -> Vec<Arc<T>>) -> &[Arc<T>] {
        let version = self.realm.version();
        if self.seen != Some(version) {
            self.found = find(&self.realm);
            self.seen = Some(version);
        }
        &self.found
    }
}
