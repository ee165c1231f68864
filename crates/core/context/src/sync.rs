//! What the context locks and spawns with. In a build with `--cfg shuttle` a checker tries the schedules.

#[cfg(shuttle)]
pub(crate) use crate::shuttled::{AtomicU64, Handle, JoinHandle, Mutex, MutexGuard, RwLock, task_local, timeout};
#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, atomic::AtomicU64};
#[cfg(not(shuttle))]
pub(crate) use tokio::{runtime::Handle, task::JoinHandle, task_local, time::timeout};
