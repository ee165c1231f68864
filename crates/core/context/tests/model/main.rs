//! Scopes and realms under a checker that tries thousands of schedules: at random, and with few changes of task in odd
//! places, which finds what needs exactly those. Seeds are fixed, so a failure comes again.
//!
//! The crate's own code runs here, with the checker's locks and tasks. What that cannot show: schedules inside Tokio's
//! channels and tokens, each of whose operations is one step; effects of weak memory; anything about time, which stands
//! still, so that whatever would only end with its grace is reported as a deadlock.

mod closing;
mod order;
mod realms;
mod registering;
mod within;

use std::sync::{Arc, Mutex};

use context::{CloseError, Failure, Registration};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

const SEED: u64 = 0x7e74_e200;
const SCHEDULES: usize = 1_500;
/// How many changes of task, in places that the checker picks, a bug may need.
const DEPTHS: [usize; 2] = [2, 4];

/// Runs `model` under every schedule that is tried.
fn check<F: Future<Output = ()>>(model: impl Fn() -> F + Send + Sync + 'static) {
    fn run<F: Future<Output = ()>>(scheduler: impl Scheduler + 'static, model: impl Fn() -> F + Send + Sync + 'static) {
        let mut config = Config::new();
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(move || shuttle::future::block_on(model()));
    }
    let model = Arc::new(model);
    let with = || {
        let model = model.clone();
        move || model()
    };
    run(RandomScheduler::new_from_seed(SEED, SCHEDULES), with());
    for depth in DEPTHS {
        run(PctScheduler::new_from_seed(SEED, depth, SCHEDULES), with());
    }
}

/// Lets the others go on, if the checker likes.
async fn pause() {
    shuttle::future::yield_now().await;
}

/// What happened, in order. Not a lock of the checker: noting is no reason to change tasks.
#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<usize>>>);

impl Trace {
    fn note(&self, what: usize) {
        self.0.lock().unwrap().push(what);
    }

    fn list(&self) -> Vec<usize> {
        self.0.lock().unwrap().clone()
    }

    /// A registration that notes its withdrawal.
    fn guard(&self, what: usize) -> Registration {
        let noted = self.on_drop(what);
        let noted = Mutex::new(Some(noted));
        Registration::new(move || drop(noted.lock().unwrap().take()))
    }

    /// Notes that it was dropped.
    fn on_drop(&self, what: usize) -> OnDrop {
        OnDrop(self.clone(), what)
    }
}

struct OnDrop(Trace, usize);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}

/// `scope/what: message` of each failure, in order.
fn failures(closed: Result<(), CloseError>) -> Vec<String> {
    match closed {
        Ok(()) => Vec::new(),
        Err(CloseError::Failed(failures)) => failures.iter().map(Failure::to_string).collect(),
        Err(CloseError::FromWithin(scope)) => panic!("closed from within `{scope}`"),
    }
}
