//! What every store does, as tests. A store of one's own runs [`contract`] on places that it makes.

mod checks;
mod fixture;
mod readers;

use std::sync::Arc;
use std::time::Duration;

use crate::SessionStore;
use context::Boxed;

/// Where sessions are kept for the length of one check. Empty when it is made.
pub trait Place: Send + Sync + 'static {
    /// A store on this place. Each call gives what another process would have: leases hold between them.
    fn store(&self) -> Arc<dyn SessionStore>;
}

/// How long one check may take.
const DEADLINE: Duration = Duration::from_secs(60);

type Check = fn(Arc<dyn Place>) -> Boxed<'static, ()>;

/// Runs every check, each on a place of its own.
///
/// ```
/// # use std::sync::Arc; use session_store::{MemoryStore, SessionStore, testing};
/// struct InMemory(MemoryStore);
/// impl testing::Place for InMemory {
///     fn store(&self) -> Arc<dyn SessionStore> { Arc::new(self.0.clone()) }
/// }
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// testing::contract(|| InMemory(MemoryStore::default())).await;
/// # }
/// ```
///
/// # Panics
///
/// If the store breaks a promise; the message says which.
pub async fn contract<P: Place>(make: impl Fn() -> P) {
    for (name, check) in checks::ALL {
        let place: Arc<dyn Place> = Arc::new(make());
        let checked = tokio::time::timeout(DEADLINE, check(place)).await;
        assert!(checked.is_ok(), "`{name}` took longer than {DEADLINE:?}");
    }
}
