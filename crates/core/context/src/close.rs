//! Closing: newest first, every task joined, every error kept.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::BoxError;
use crate::scope::{Ctx, Entry, OWNER, Scope, Spawned, Stop};
use crate::sync::timeout;

/// How long a task that says it ends by itself, or a hook, may take to do so. Long enough for a slow disk: what is cut off
/// here may be the last flush of a log.
const GRACE: Duration = Duration::from_secs(30);

/// Why a closing did not go well.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CloseError {
    /// The scope would have waited for the task that closes it.
    #[error("`{0}` cannot wait for itself: closed from one of its own tasks")]
    FromWithin(&'static str),
    /// Everything is closed, but some of it complained.
    #[error("{} failed to close: {}", count(.0), list(.0))]
    Failed(Arc<[Failure]>),
}

/// One thing that failed while a scope closed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{scope}/{what}: {message}")]
pub struct Failure {
    /// The scope that owned it.
    pub scope: &'static str,
    /// The task or hook.
    pub what: &'static str,
    /// What it said.
    pub message: Arc<str>,
}

impl Scope {
    /// Withdraws everything newest first, cancels and joins every task, and says what failed.
    ///
    /// Idempotent: every caller gets the same answer. Dropping the future does not stop the closing.
    pub async fn close(&self) -> Result<(), CloseError> {
        if OWNER.try_with(|owner| owner.is_within(self)).unwrap_or(false) {
            return Err(CloseError::FromWithin(self.ctx.0.name));
        }
        self.begin_close();
        let failures = self.closed().await;
        if failures.is_empty() { Ok(()) } else { Err(CloseError::Failed(failures)) }
    }
}

impl Ctx {
    /// Starts the closing in a task of its own, so that no caller's dropped future can stop it half way.
    pub(crate) fn begin_close(&self) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.closing, true) {
            return;
        }
        let idle = state.entries.is_empty();
        drop(state);
        self.0.cancel.cancel();
        if idle {
            return self.finish(Vec::new());
        }
        let unwind = self.clone().unwind();
        self.0.runtime.spawn(OWNER.scope(self.clone(), unwind));
    }

    async fn unwind(self) {
        let mut failures = Vec::new();
        while let Some(entry) = self.pop() {
            let (what, result) = match entry {
                Entry::Guard(guard) => {
                    let dropped = catch_unwind(AssertUnwindSafe(|| drop(guard)));
                    ("guard", dropped.map_err(|_| "panicked".into()))
                }
                Entry::Scope(child) => {
                    child.begin_close();
                    failures.extend(child.closed().await.iter().cloned());
                    continue;
                }
                Entry::Hook(what, hook) => {
                    // Called inside the task, so that its own panic is caught as well as its future's.
                    let hooked = self.0.runtime.spawn(OWNER.scope(self.clone(), async move { hook().await }));
                    (what, join(Stop::Join, hooked).await)
                }
                Entry::Task(what, stop, handle) => match handle.await {
                    Ok(handle) => (what, join(stop, handle).await),
                    // It was never spawned: whoever was about to has panicked.
                    Err(_) => continue,
                },
            };
            if let Err(error) = result {
                tracing::warn!(scope = self.0.name, what, %error, "failed while its scope closed");
                let message = error.to_string().into();
                failures.push(Failure { scope: self.0.name, what, message });
            }
        }
        self.finish(failures);
    }

    fn finish(&self, failures: Vec<Failure>) {
        self.0.closed.set(failures.into()).expect("a scope closes once");
        if let Some((parent, id)) = &self.0.parent {
            parent.forget_closed(*id);
        }
    }

    /// The newest entry. Sibling scopes at the top all begin to close, so a slow one holds up no other.
    fn pop(&self) -> Option<Entry> {
        let (entry, siblings) = {
            let mut state = self.lock();
            let (_, entry) = state.entries.pop_last()?;
            let siblings: Vec<Ctx> = match entry {
                Entry::Scope(_) => state.entries.values().rev().map_while(Entry::as_scope).collect(),
                Entry::Guard(_) | Entry::Task(..) | Entry::Hook(..) => Vec::new(),
            };
            (entry, siblings)
        };
        siblings.iter().for_each(Ctx::begin_close);
        Some(entry)
    }

    fn is_within(&self, scope: &Ctx) -> bool {
        std::iter::successors(Some(self), |ctx| ctx.0.parent.as_ref().map(|(parent, _)| parent))
            .any(|ctx| Arc::ptr_eq(&ctx.0, &scope.0))
    }
}

async fn join(stop: Stop, mut handle: Spawned) -> Result<(), BoxError> {
    if stop == Stop::Abort {
        handle.abort();
    }
    let joined = match timeout(GRACE, &mut handle).await {
        Ok(joined) => joined,
        Err(_) => {
            handle.abort();
            return Err(format!("did not end within {} s of being cancelled", GRACE.as_secs()).into());
        }
    };
    match joined {
        Err(stopped) if stopped.is_cancelled() => Ok(()),
        joined => joined?,
    }
}

impl Entry {
    fn as_scope(&self) -> Option<Ctx> {
        match self {
            Entry::Scope(ctx) => Some(ctx.clone()),
            Entry::Guard(_) | Entry::Task(..) | Entry::Hook(..) => None,
        }
    }
}

fn count(failures: &[Failure]) -> String {
    match failures.len() {
        1 => "one thing".to_owned(),
        n => format!("{n} things"),
    }
}

fn list(failures: &[Failure]) -> String {
    failures.iter().map(Failure::to_string).collect::<Vec<_>>().join("; ")
}
