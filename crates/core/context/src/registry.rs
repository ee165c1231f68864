use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use crate::sync::{Mutex, MutexGuard};
use crate::{Listeners, Registration};

/// Unique names, insertion order, guards, and news of every change.
pub struct Registry<T: ?Sized> {
    entries: Arc<Mutex<Entries<T>>>,
    listeners: Arc<Listeners<Listener<T>>>,
}

type Listener<T> = dyn Fn(&Change<T>) + Send + Sync;

struct Entries<T: ?Sized> {
    next: u64,
    by_name: HashMap<Arc<str>, u64>,
    in_order: BTreeMap<u64, (Arc<str>, Arc<T>)>,
}

/// What happened in a [`Registry`].
pub enum Change<T: ?Sized> {
    /// A name was taken.
    Added(Arc<str>, Arc<T>),
    /// A name became free.
    Removed(Arc<str>, Arc<T>),
}

/// Another entry of the same registry has this name.
#[derive(Debug, thiserror::Error)]
#[error("the name `{0}` is taken")]
pub struct NameTaken(pub Arc<str>);

impl<T: ?Sized> Default for Registry<T> {
    fn default() -> Self {
        let entries = Entries { next: 0, by_name: HashMap::new(), in_order: BTreeMap::new() };
        Self { entries: Arc::new(Mutex::new(entries)), listeners: Arc::default() }
    }
}

impl<T: ?Sized + Send + Sync + 'static> Registry<T> {
    /// Takes a name. Dropping the registration frees it; what was handed out before stays usable.
    pub fn register(&self, name: impl Into<Arc<str>>, value: Arc<T>) -> Result<Registration, NameTaken> {
        let name = name.into();
        let mut entries = lock(&self.entries);
        let id = entries.next;
        if entries.by_name.contains_key(&name) {
            return Err(NameTaken(name));
        }
        entries.next += 1;
        entries.by_name.insert(name.clone(), id);
        entries.in_order.insert(id, (name.clone(), value.clone()));
        drop(entries);
        announce(&self.listeners, &Change::Added(name, value));
        let (entries, listeners) = (Arc::downgrade(&self.entries), Arc::downgrade(&self.listeners));
        Ok(Registration::new(move || {
            let Some(entries) = entries.upgrade() else { return };
            let removed = remove(&mut lock(&entries), id);
            if let (Some((name, value)), Some(listeners)) = (removed, listeners.upgrade()) {
                announce(&listeners, &Change::Removed(name, value));
            }
        }))
    }

    /// The value under a name.
    pub fn get(&self, name: &str) -> Option<Arc<T>> {
        let entries = lock(&self.entries);
        let id = entries.by_name.get(name)?;
        entries.in_order.get(id).map(|(_, value)| value.clone())
    }

    /// Everything, in order of registration.
    pub fn list(&self) -> Vec<(Arc<str>, Arc<T>)> {
        lock(&self.entries).in_order.values().cloned().collect()
    }

    /// Watches names come and go. Called outside the lock, after the change.
    pub fn on_change(&self, listener: impl Fn(&Change<T>) + Send + Sync + 'static) -> Registration {
        self.listeners.add(Arc::new(listener))
    }
}

fn remove<T: ?Sized>(entries: &mut Entries<T>, id: u64) -> Option<(Arc<str>, Arc<T>)> {
    let removed = entries.in_order.remove(&id)?;
    entries.by_name.remove(&removed.0);
    Some(removed)
}

fn announce<T: ?Sized + Send + Sync + 'static>(listeners: &Listeners<Listener<T>>, change: &Change<T>) {
    listeners.each(|listener| listener(change));
}

fn lock<T: ?Sized>(entries: &Mutex<Entries<T>>) -> MutexGuard<'_, Entries<T>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}
