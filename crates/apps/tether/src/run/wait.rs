//! Waiting for a task: its turn, then what goes on in the background, and whatever stops it early.

use std::io;

use agent::{Agent, AgentRef, Receipt, TurnOutcome};
use app_boot::{Stop, Stops};
use context::{CloseError, Scope};
use jobs::{Jobs, last_turn};
use session::TurnReason;

use crate::exit::Exit;

/// How a task ended.
pub(super) struct Waited {
    /// Of its last turn.
    pub(super) outcome: TurnOutcome,
    /// What stopped it early.
    pub(super) stop: Option<Stop>,
    /// Whether the agent ended well, its log flushed.
    pub(super) closed: Result<(), CloseError>,
}

/// Waits for the task and disposes the agent. What stops it early ends the open turn; what waits behind it stays in the
/// log.
pub(super) async fn wait(app: &Scope, stops: &Stops, agent: &Agent, receipt: Receipt) -> io::Result<Waited> {
    let mut outcome = std::pin::pin!(receipt.outcome());
    let first = tokio::select! {
        biased;
        outcome = &mut outcome => Ok(outcome),
        stop = stops.stopped() => Err(stop),
    };
    let (first, stop) = match first {
        Err(stop) => (None, stop),
        Ok(first) => {
            let stop = tokio::select! {
                biased;
                () = background(app, agent, &first) => None,
                stop = stops.stopped() => Some(stop),
            };
            match stop {
                Some(stop) => (Some(first), stop),
                None => {
                    let closed = agent.dispose().await;
                    return Ok(Waited { outcome: last_turn(agent.session(), first), stop: None, closed });
                }
            }
        }
    };
    let cause = match stop {
        Stop::Interrupted | Stop::Terminated => "interrupted by the user",
        Stop::TimedOut => "the time given is over",
    };
    stops.end_for_certain(status(stop).code().into())?;
    let closed = agent.dispose_because(cause).await;
    let mut outcome = match first {
        None => outcome.await,
        Some(first) => last_turn(agent.session(), first),
    };
    if outcome.reason == TurnReason::Completed {
        // A turn that was done already: the task was not.
        outcome.reason = TurnReason::Aborted { cause: Some(cause.into()) };
    }
    Ok(Waited { outcome, stop: Some(stop), closed })
}

/// What being stopped makes of the command's status.
pub(super) fn status(stop: Stop) -> Exit {
    match stop {
        Stop::Interrupted | Stop::Terminated => Exit::Interrupted,
        Stop::TimedOut => Exit::Limit,
    }
}

/// Waits while the agent has jobs, for their notices and the turns that these cause. One that does not complete ends it.
async fn background(app: &Scope, agent: &AgentRef, first: &TurnOutcome) {
    let Some(jobs) = app.get::<Jobs>() else { return };
    if first.reason == TurnReason::Completed {
        jobs.finished(agent, |last| last.reason == TurnReason::Completed).await;
    }
}
