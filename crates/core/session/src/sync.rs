//! What a session locks with. In a build with `--cfg shuttle` a checker tries the schedules.

#[cfg(shuttle)]
pub(crate) use context::shuttled::{Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard};
