//! What agents lock with. In a build with `--cfg shuttle` a checker tries the schedules.

#[cfg(shuttle)]
pub(crate) use context::shuttled::{AtomicBool, Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicBool};
