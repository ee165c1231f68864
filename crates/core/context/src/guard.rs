use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use crate::sync::Mutex;

/// Something registered. Dropping it withdraws it; `ctx.own(registration)` hands it to a scope instead.
#[must_use = "dropping a registration withdraws it"]
pub struct Registration(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Registration {
    /// A registration that `undo` withdraws.
    pub fn new(undo: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(undo)))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(undo) = self.0.take() {
            undo();
        }
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Registration")
    }
}

/// An ordered list of callbacks. Reading copies the list out, so no callback runs under the lock.
pub struct Listeners<T: ?Sized>(Arc<Mutex<Vec<Arc<T>>>>);

impl<T: ?Sized> Default for Listeners<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: ?Sized + Send + Sync + 'static> Listeners<T> {
    /// Adds a listener behind those already there.
    pub fn add(&self, listener: Arc<T>) -> Registration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener.clone());
        let list = Arc::downgrade(&self.0);
        Registration::new(move || {
            if let Some(list) = list.upgrade() {
                let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
                list.retain(|other| !Arc::ptr_eq(other, &listener));
            }
        })
    }

    /// Those there now, oldest first.
    pub fn all(&self) -> Vec<Arc<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls each in order; one that panics is reported and does not starve the next.
    pub fn each(&self, call: impl Fn(&T)) {
        call_each(&self.all(), call);
    }
}

pub(crate) fn call_each<T: ?Sized>(listeners: &[Arc<T>], call: impl Fn(&T)) {
    for listener in listeners {
        if catch_unwind(AssertUnwindSafe(|| call(listener))).is_err() {
            tracing::error!("a listener panicked");
        }
    }
}
