//! Telling observers. The log is the queue: each observer has a place in it, and whoever appends while nobody is
//! telling tells until everyone has arrived at the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::session::State;
use crate::sync::MutexGuard;
use crate::{Event, Session};

type Listener = dyn Fn(&Event) + Send + Sync;

#[derive(Default)]
pub(crate) struct Observers {
    list: Vec<Observer>,
    next_id: u64,
    telling: bool,
}

#[derive(Clone)]
struct Observer {
    id: u64,
    /// The `seq` that it is told next.
    at: u64,
    listener: Arc<Listener>,
}

impl Observers {
    pub(crate) fn add(&mut self, from: u64, listener: Arc<Listener>) -> u64 {
        self.next_id += 1;
        self.list.push(Observer { id: self.next_id, at: from, listener });
        self.next_id
    }

    /// The listener is handed back so that it is dropped outside the lock.
    pub(crate) fn remove(&mut self, id: u64) -> Option<Arc<Listener>> {
        let index = self.list.iter().position(|observer| observer.id == id)?;
        Some(self.list.remove(index).listener)
    }
}

pub(crate) fn tell<'a>(session: &'a Session, mut state: MutexGuard<'a, State>) {
    if std::mem::replace(&mut state.observers.telling, true) {
        return;
    }
    while let Some((event, audience)) = next(&mut state) {
        drop(state);
        for listener in &audience {
            if catch_unwind(AssertUnwindSafe(|| listener(&event))).is_err() {
                tracing::error!(session = %session.id(), "an observer panicked");
            }
        }
        drop((event, audience));
        state = session.lock();
    }
    state.observers.telling = false;
}

/// The oldest event that somebody has not been told, and who has not.
fn next(state: &mut State) -> Option<(Event, Vec<Arc<Listener>>)> {
    let len = state.log.len();
    let seq = state.observers.list.iter().map(|observer| observer.at).filter(|at| *at < len).min()?;
    let event = state.log.event(seq).expect("below the length").clone();
    let due = state.observers.list.iter_mut().filter(|observer| observer.at == seq);
    let audience = due.map(|observer| {
        observer.at += 1;
        observer.listener.clone()
    });
    Some((event, audience.collect()))
}
