//! What context, session and agent lock and spawn with when `shuttle` chooses who runs, at every lock, every release and
//! every await. In no other build. Tokio's channels, tokens and notifications need no runtime and stay: to the checker
//! each of their operations is one step.

use std::cell::RefCell;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use shuttle::future;
pub(crate) use shuttle::sync::RwLock;
pub use shuttle::sync::atomic::{AtomicBool, AtomicU64};
use shuttle::thread::LocalKey as ThreadLocal;

/// The checker's mutex, whose release others may also notice before the next step. The checker's own changes tasks before
/// it releases and not again until the next operation that it sees, and it sees none of Tokio's.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> Result<MutexGuard<'_, T>, PoisonError<MutexGuard<'_, T>>> {
        match self.0.lock() {
            Ok(guard) => Ok(MutexGuard(Some(guard))),
            Err(poisoned) => Err(PoisonError::new(MutexGuard(Some(poisoned.into_inner())))),
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_deref().expect("held until it is dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("held until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.0.take());
        if !std::thread::panicking() {
            // To the checker, that and no more: others may run now.
            shuttle::thread::sleep(Duration::ZERO);
        }
    }
}

#[derive(Clone)]
pub(crate) struct Handle;

pub(crate) struct JoinHandle<T>(future::JoinHandle<T>);

/// The task was aborted. A panic ends the whole check instead.
#[derive(Debug, thiserror::Error)]
#[error("aborted")]
pub(crate) struct JoinError;

impl Handle {
    pub(crate) fn current() -> Self {
        Self
    }

    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        JoinHandle(future::spawn(task))
    }

    pub(crate) fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        self.spawn(async { work() })
    }
}

impl<T> JoinHandle<T> {
    pub(crate) fn abort(&self) {
        self.0.abort();
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(cx)).map_err(|_| JoinError))
    }
}

impl JoinError {
    pub(crate) fn is_cancelled(&self) -> bool {
        true
    }
}

/// Time stands still: what would only end with its time is a deadlock, which the checker reports.
pub(crate) async fn timeout<F: Future>(_: Duration, work: F) -> Result<F::Output, std::convert::Infallible> {
    Ok(work.await)
}

/// A value that the whole check keeps apart for each task, also where one is interrupted in the middle of a poll.
pub(crate) struct LocalKey<T: 'static>(pub(crate) &'static ThreadLocal<RefCell<Option<T>>>);

macro_rules! task_local {
    ($vis:vis static $name:ident: $type:ty;) => {
        $vis static $name: crate::shuttled::LocalKey<$type> = {
            shuttle::thread_local! {
                static SLOT: std::cell::RefCell<Option<$type>> = std::cell::RefCell::new(None)
            }
            crate::shuttled::LocalKey(&SLOT)
        };
    };
}
pub(crate) use task_local;

impl<T> LocalKey<T> {
    pub(crate) async fn scope<F: Future>(&'static self, value: T, task: F) -> F::Output {
        let (mut value, mut task) = (Some(value), pin!(task));
        poll_fn(|cx| self.with_value(&mut value, || task.as_mut().poll(cx))).await
    }

    pub(crate) fn sync_scope<R>(&'static self, value: T, work: impl FnOnce() -> R) -> R {
        self.with_value(&mut Some(value), work)
    }

    pub(crate) fn try_with<R>(&'static self, ask: impl FnOnce(&T) -> R) -> Result<R, Unset> {
        self.0.with(|slot| slot.borrow().as_ref().map(ask)).ok_or(Unset)
    }

    fn with_value<R>(&'static self, value: &mut Option<T>, work: impl FnOnce() -> R) -> R {
        struct Entered<'a, T: 'static>(&'static ThreadLocal<RefCell<Option<T>>>, &'a mut Option<T>);
        impl<T> Entered<'_, T> {
            fn swap(&mut self) {
                self.0.with(|slot| std::mem::swap(&mut *slot.borrow_mut(), self.1));
            }
        }
        impl<T> Drop for Entered<'_, T> {
            fn drop(&mut self) {
                self.swap();
            }
        }
        let mut entered = Entered(self.0, value);
        entered.swap();
        work()
    }
}

/// Nobody has set the value for this task.
#[derive(Debug)]
pub(crate) struct Unset;
