//! What stops a task early: a signal, or the time that it was given.

use std::io;
use std::time::Duration;

use agent::{Agent, Inbox, Receipt, TurnOutcome};
use session::TurnStart;
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

    /// Waits for the outcome. The first signal, or the end of the time, cancels the task, whose end is then awaited; a
    /// second Ctrl-C ends the process at once.
    pub(crate) async fn wait(&mut self, agent: &Agent, receipt: Receipt) -> (TurnOutcome, Option<Stop>) {
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
            outcome = &mut outcome => return (outcome, None),
            _ = self.interrupt.recv() => Stop::Interrupted,
            _ = self.terminate.recv() => Stop::Interrupted,
            () = over => Stop::TimedOut,
        };
        let cause = match stop {
            Stop::Interrupted => "interrupted by the user",
            Stop::TimedOut => "the time given is over",
        };
        // A turn that has not begun yet is cancelled when it does: the task's own, and what a resumed session still has
        // to do before it.
        let (session, later) = (agent.session(), agent.handle().clone());
        let _later = session.observe(session.len(), move |event| {
            if event.get::<TurnStart>().is_some() {
                later.cancel(cause, Inbox::Keep);
            }
        });
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
