//! Providers of children that are threads: they have no session here, and stop only if they want to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use context::{BoxError, Scope};
use llm::Content;
use tokio::sync::oneshot;

use super::house::{NAME, patience, spine};
use crate::testing::{Children, Fixture, Task};
use crate::{
    Capability, Limits, Request, RunResult, Start, StartError, Started, StopReason, SubagentProvider, Subagents,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// A thread goes on when its run is gone.
    LeaksAThread,
    /// A start that is dropped half way leaves what it has made by then.
    LeaksWhenDropped,
    /// Offers a schema and never looks at it.
    IgnoresASchema,
}

/// Children that are threads, with a bug, or with none.
pub(super) struct House {
    bug: Option<Bug>,
    alive: Arc<AtomicUsize>,
}

impl House {
    pub(super) fn of(bug: Option<Bug>) -> Self {
        Self { bug, alive: Arc::default() }
    }
}

#[async_trait]
impl Fixture for House {
    fn name(&self) -> &str {
        NAME
    }

    fn children(&self) -> Children {
        Children::Elsewhere
    }

    fn request(&self, task: Task) -> Option<Request> {
        let prompt = match task {
            Task::Say(words) => format!("say {words}"),
            Task::Silence => "silence".to_owned(),
            Task::Hang => "hang".to_owned(),
            Task::Fail => "fail".to_owned(),
            Task::Panic => "panic".to_owned(),
            Task::HandIn => "say {\"n\":7}".to_owned(),
            Task::Call(_) => return None,
        };
        Some(Request::new(prompt))
    }

    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
        spine(app, limits).await?;
        let subagents = app.get::<Subagents>().ok_or("the plugin provides it")?;
        let threads = Threads { bug: self.bug, alive: self.alive.clone() };
        Ok(app.own(subagents.register(NAME, Arc::new(threads))?)?)
    }

    fn outside(&self) -> Vec<String> {
        (0..self.alive.load(Ordering::SeqCst)).map(|n| format!("the thread {n}")).collect()
    }

    fn patience(&self) -> Duration {
        patience(self.bug.is_some())
    }
}

struct Threads {
    bug: Option<Bug>,
    alive: Arc<AtomicUsize>,
}

/// Counts for as long as it lives.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        Self(alive.clone())
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl SubagentProvider for Threads {
    fn offers(&self) -> &'static [Capability] {
        match self.bug {
            Some(Bug::IgnoresASchema) => &[Capability::OutputSchema],
            _ => &[],
        }
    }

    fn inherits_parent_context(&self) -> bool {
        false
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        let (mut alive, has) = (Some(Alive::new(&self.alive)), |bug| self.bug == Some(bug));
        if has(Bug::LeaksWhenDropped) {
            std::mem::forget(alive.take());
        }
        // Threads of this kind are not made at once.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        let alive = alive.unwrap_or_else(|| Alive(self.alive.clone()));
        let (stop, stopped) = mpsc::channel::<()>();
        let (done, result) = oneshot::channel();
        let (prompt, leaks) = (start.request.prompt, has(Bug::LeaksAThread));
        let thread = thread::spawn(move || {
            let _sent = done.send(live(&prompt, &stopped));
            drop(alive);
        });
        let join = async move || {
            if leaks {
                std::mem::forget(stop);
                return Ok(());
            }
            drop(stop);
            // One that panicked has said so by not answering.
            let _panicked = thread.join();
            Ok(())
        };
        start.ctx.on_close("thread", join).map_err(|_| StartError::ParentClosing)?;
        let panicked = || RunResult { message: Some("it panicked".into()), ..RunResult::ended(StopReason::Error) };
        Ok(Started::elsewhere(async move { result.await.unwrap_or_else(|_| panicked()) }))
    }
}

/// What a thread does, to its end or until nobody wants it any more.
fn live(prompt: &str, stopped: &mpsc::Receiver<()>) -> RunResult {
    match prompt.split_once(' ').unwrap_or((prompt, "")) {
        ("say", words) => RunResult::completed(vec![Content::text(words)]),
        ("silence", _) => RunResult::completed(Vec::new()),
        ("fail", _) => RunResult { message: Some("no".into()), ..RunResult::ended(StopReason::Error) },
        ("panic", _) => panic!("as it was told"),
        _ => {
            let _stop = stopped.recv();
            RunResult::ended(StopReason::Aborted)
        }
    }
}
