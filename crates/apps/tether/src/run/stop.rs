//! What stops a task early: a signal, or the time that it was given.

use std::io;
use std::time::Duration;

use agent::{Agent, Inbox, TurnOutcome};
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

    /// Waits for the outcome. The first signal, or the end of the time, cancels the turn, whose end is then awaited; a
    /// second Ctrl-C ends the process at once.
    pub(crate) async fn wait(
        &mut self,
        agent: &Agent,
        outcome: impl Future<Output = TurnOutcome>,
    ) -> (TurnOutcome, Option<Stop>) {
        let mut outcome = std::pin::pin!(outcome);
        let timeout = self.timeout;
        let over = async {
            match timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            biased;
            outcome = &mut outcome => return (outcome, None),
            _ = self.interrupt.recv() => Stop::Interrupted,
            _ = self.terminate.recv() => Stop::Interrupted,
            () = over => Stop::TimedOut,
        };
        let cause = match stop {
            Stop::Interrupted => "interrupted by the user",
            Stop::TimedOut => "the time given is over",
        };
        agent.cancel(cause, Inbox::Keep);
        tokio::select! {
            biased;
            outcome = &mut outcome => (outcome, Some(stop)),
            _ = self.interrupt.recv() => {
                // Everything up to the last checkpoint is on disk.
                std::process::exit(130)
            }
        }
    }
}
