//! What the context promises to everything that plugs into it.

mod blocking;
mod chains;
mod closing;
mod events;
mod plugins;
mod realms;
mod refused;
mod registries;
mod shut_down;
mod siblings;
mod stress;
mod tasks;
mod within;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::{BoxError, CloseError, Failure, Registration};
use tokio::time::timeout;

/// Far longer than any of these tests takes, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    timeout(DEADLINE, work).await.expect("it should not hang")
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Everything since the last call.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A registration that notes its withdrawal.
    fn guard(&self, what: &'static str) -> Registration {
        let trace = self.clone();
        Registration::new(move || trace.note(what))
    }

    /// What a value leaves behind when it is dropped.
    fn on_drop(&self, what: &'static str) -> OnDrop {
        OnDrop(self.clone(), what)
    }
}

struct OnDrop(Trace, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

/// How many of something there are.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

struct Counted(Count);

impl Count {
    fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::SeqCst);
        Counted(self.clone())
    }

    fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn refuses(message: &'static str) -> Result<(), BoxError> {
    Err(message.into())
}

/// `scope/what: message` of each failure, in order.
fn failures(closed: Result<(), CloseError>) -> Vec<String> {
    match closed {
        Ok(()) => Vec::new(),
        Err(CloseError::Failed(failures)) => failures.iter().map(Failure::to_string).collect(),
        Err(CloseError::FromWithin(scope)) => panic!("closed from within `{scope}`"),
    }
}
