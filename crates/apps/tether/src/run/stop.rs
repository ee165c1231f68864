//! What stops a task early: a signal, or the time that it was given.

use std::io;
use std::time::Duration;

use agent::{Agent, Receipt, TurnOutcome};
use context::CloseError;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    interrupt: Signal,
    terminate: Signal,
    timeout: Option<Duration>,
}

impl Stops {
    pub(crate) fn new(timeout: Option<Duration>) -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())?, timeout })
    }

    /// Waits for the outcome and disposes the agent. The first signal, or the end of the time, ends the open turn, and
    /// what waits behind it stays in the log; a second Ctrl-C ends the process at once.
    pub(crate) async fn wait(&mut self, agent: &Agent, receipt: Receipt) -> Waited {
        let mut outcome = std::pin::pin!(receipt.outcome());
        let timeout = self.timeout;
        let over = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            biased;
            outcome = &mut outcome => return Waited { outcome, stop: None, closed: agent.dispose().await },
            _ = self.interrupt.recv() => Stop::Interrupted,
            _ = self.terminate.recv() => Stop::Interrupted,
            () = over => Stop::TimedOut,
        };
        let cause = match stop {
            Stop::Interrupted => "interrupted by the user",
            Stop::TimedOut => "the time given is over",
        };
        tokio::select! {
            biased;
            closed = agent.dispose_because(cause) => Waited { outcome: outcome.await, stop: Some(stop), closed },
            _ = self.interrupt.recv() => {
                // Everything up to the last checkpoint is on disk.
                std::process::exit(130)
            }
        }
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
