//! A child that goes on behind its call: a job of its parent's.

use std::sync::Arc;

use agent::AgentRef;
use jobs::{Jobs, NewJob, Outcome, Working};
use session::Session;
use subagent::{BackgroundReport, Request, Run, StopReason};
use tokio_util::sync::CancellationToken;
use tools::{Call, ToolOutput, code};

use crate::delegate::{Finished, wind_up};
use crate::{Config, Services, text};

/// Starts a child, and answers as soon as it is published. From then on it ends with its job and not with the turn.
pub(crate) async fn in_background(
    config: &Config,
    services: &Services,
    jobs: &Jobs,
    parent: &AgentRef,
    request: Request,
    call: &Call,
) -> ToolOutput {
    let label = request.label.clone().unwrap_or_default();
    // First: no child is started that could not stay.
    let place = match jobs.open(parent, NewJob::new(config.tool.clone(), label)) {
        Ok(place) => place,
        Err(error) => return ToolOutput::error(code::FAILED, text::not_started(&error)),
    };
    let cancelled = CancellationToken::new();
    let request = Request { cancelled: cancelled.clone(), ..request };
    let mut starting = services.subagents.start(parent, &config.provider, request);
    let started = tokio::select! {
        biased;
        started = &mut starting => started,
        () = call.cancelled.cancelled() => {
            cancelled.cancel();
            // It may have been published already.
            starting.await
        }
    };
    let run = match started {
        Ok(run) => run,
        Err(error) => return ToolOutput::error(code::FAILED, text::not_started(&error)),
    };
    // From here on it would no longer end with the turn.
    if call.cancelled.is_cancelled() {
        let Finished { answer, report, .. } = wind_up(&run, &config.provider).await;
        return ToolOutput::error(code::CANCELLED, answer.said + &answer.notes).with_meta(&report);
    }
    let (child, provider, log) = (run.child(), config.provider.clone(), parent.session().clone());
    match place.start(move |job| follow(run, provider, log, job)) {
        Ok(id) => ToolOutput::text(text::started(id, child)),
        Err(error) => ToolOutput::error(code::FAILED, text::not_started(&error)),
    }
}

/// The work of the job: waits for the child, or ends it. What came of it is in the parent's log before the job has ended.
async fn follow(run: Run, provider: Arc<str>, log: Session, job: Working) -> Outcome {
    tokio::select! {
        biased;
        _ = run.result() => {}
        () = job.cancelled().cancelled() => {}
    }
    let Finished { reason, answer, report } = wind_up(&run, &provider).await;
    // A parent that ends has closed its log by now, and lets go of it after this.
    let _ = log.append_last_words(BackgroundReport(report));
    let said = answer.said + &answer.notes;
    match reason {
        StopReason::Completed => Outcome::completed(said),
        StopReason::Aborted | StopReason::MaxTokens | StopReason::Refusal | StopReason::Error => Outcome::failed(said),
    }
}
