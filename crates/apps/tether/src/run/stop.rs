//! What stops a task early: a signal, or the time that it was given.

use std::io;
use std::thread;
use std::time::Duration;

use agent::{Agent, Receipt, TurnOutcome};
use context::CloseError;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long the end of a stopped task may take: longer than any of its parts is given.
const PATIENCE: Duration = Duration::from_secs(40);

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
    /// Listens on a thread of its own that ends with the process: whatever the others are held up by, the second
    /// signal ends the process at once.
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
    pub(crate) async fn wait(&self, agent: &Agent, receipt: Receipt) -> io::Result<Waited> {
        let mut outcome = std::pin::pin!(receipt.outcome());
        let over = async {
            match self.timeout {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let stop = tokio::select! {
            biased;
            outcome = &mut outcome => return Ok(Waited { outcome, stop: None, closed: agent.dispose().await }),
            () = self.interrupted.cancelled() => Stop::Interrupted,
            () = over => Stop::TimedOut,
        };
        let cause = match stop {
            Stop::Interrupted => "interrupted by the user",
            Stop::TimedOut => "the time given is over",
        };
        end_for_certain(stop)?;
        let closed = agent.dispose_because(cause).await;
        Ok(Waited { outcome: outcome.await, stop: Some(stop), closed })
    }
}

/// A task that was stopped ends, whatever holds it up: a reader of our output that does not read, a model's server that
/// never stops sending.
fn end_for_certain(stop: Stop) -> io::Result<()> {
    let end = move || {
        thread::sleep(PATIENCE);
        // Everything up to the last checkpoint is on disk.
        std::process::exit(match stop {
            Stop::Interrupted => 130,
            Stop::TimedOut => 3,
        })
    };
    thread::Builder::new().name("end".into()).spawn(end).map(drop)
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
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    // Everything up to the last checkpoint is on disk.
    std::process::exit(130)
}
