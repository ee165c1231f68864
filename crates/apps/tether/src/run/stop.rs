//! What stops a task early: a signal, or the time that it was given.

use std::io;
use std::thread;
use std::time::Duration;

use agent::{Agent, Receipt, TurnOutcome};
use context::CloseError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Why a task was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C, or a polite request to end.
    Interrupted,
    /// The time given with `--timeout` is over.
    TimedOut,
}

/// Listens from the start, so that no signal is lost while the app is put together.
pub(crate) struct Stops {
    interrupted: CancellationToken,
    timeout: Option<Duration>,
}

impl Stops {
    /// Listens on a thread of its own that ends with the process: whatever the others are held up by, the second Ctrl-C
    /// ends the process at once.
    pub(crate) fn new(timeout: Option<Duration>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (interrupt, terminate) = {
            let _within = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        let interrupted = CancellationToken::new();
        let first = interrupted.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(listen(interrupt, terminate, first)))?;
        Ok(Self { interrupted, timeout })
    }

    /// Waits for the outcome and disposes the agent. The first signal, or the end of the time, ends the open turn, and
    /// what waits behind it stays in the log.
    pub(crate) async fn wait(&self, agent: &Agent, receipt: Receipt) -> Waited {
        let mut outcome = std::pin::pin!(receipt.outcome());
        let over = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            biased;
            outcome = &mut outcome => return Waited { outcome, stop: None, closed: agent.dispose().await },
            () = self.interrupted.cancelled() => Stop::Interrupted,
            () = over => Stop::TimedOut,
        };
        let cause = match stop {
            Stop::Interrupted => "interrupted by the user",
            Stop::TimedOut => "the time given is over",
        };
        let closed = agent.dispose_because(cause).await;
        Waited { outcome: outcome.await, stop: Some(stop), closed }
    }
}

/// How a task ended.
pub(crate) struct Waited {
    pub(crate) outcome: TurnOutcome,
    /// What stopped it early.
    pub(crate) stop: Option<Stop>,
    /// Whether the agent ended well, its log flushed.
    pub(crate) closed: Result<(), CloseError>,
}

async fn listen(mut interrupt: Signal, mut terminate: Signal, first: CancellationToken) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    first.cancel();
    interrupt.recv().await;
    // Everything up to the last checkpoint is on disk.
    std::process::exit(130)
}
