//! Runs a child agent in this process, for the providers that do.
//!
//! *Owns:* the one run driver that fresh and forked children share.
//! *Never:* a registered provider, a decision about policy, a cleanup that closing the run's scope would not do.
//!
//! A provider is a name and a seed:
//!
//! ```
//! # use std::sync::Arc; use context::Scope; use session::Seed; use subagent::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # let (agents, subagents) = (agent::Agents::new(&app), Subagents::new(&app, Limits::default()));
//! let fresh = Arc::new(subagent_inprocess::InProcess::new(agents, Seed::Fresh));
//! assert!(!fresh.inherits_parent_context());
//! app.own(subagents.register("fresh", fresh)?)?;
//! # app.close().await?; Ok(()) }
//! ```
//!
//! One that does something of its own around it calls [`run`].

use std::sync::Arc;

use agent::{AgentRef, Agents, Receipt, TurnOutcome};
use async_trait::async_trait;
use jobs::{Jobs, last_turn};
use llm::Content;
use session::{Seed, Session, TurnReason};
use subagent::{
    Capability, Composed, RESULT_TOOL, RunResult, Start, StartError, Started, StopReason, SubagentProvider, compose,
    denials_in,
};

/// What every child in this process can honour.
pub const OFFERS: &[Capability] =
    &[Capability::OutputSchema, Capability::DepthLimit, Capability::ToolFilter, Capability::Persona];

/// Children that are seeded in one way.
pub struct InProcess {
    agents: Arc<Agents>,
    seed: Seed,
}

impl InProcess {
    /// A provider to register.
    pub fn new(agents: Arc<Agents>, seed: Seed) -> Self {
        Self { agents, seed }
    }
}

#[async_trait]
impl SubagentProvider for InProcess {
    fn offers(&self) -> &'static [Capability] {
        OFFERS
    }

    fn inherits_parent_context(&self) -> bool {
        match self.seed {
            Seed::Fresh => false,
            Seed::ClosedTurns => true,
        }
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        run(&self.agents, start, self.seed).await
    }
}

/// Creates a child seeded as `seed` says, prompts it once and reports how it ended.
///
/// It is done when what it began in the background is done too, and the turns are that it was told in: the last of them is
/// its result. A turn that does not complete, a result that was handed in, and its cancellation end it at once, and its
/// jobs with it.
pub async fn run(agents: &Agents, start: Start, seed: Seed) -> Result<Started, StartError> {
    let Composed { mut agent, structured } = compose(agents, start, seed).await?;
    let receipt = agent.prompted().expect("the composition prompts the child");
    let agent = agent.leave();
    Ok(Started { child: Some(agent.id()), result: Box::pin(finish(receipt, agent, structured)) })
}

async fn finish(receipt: Receipt, agent: AgentRef, structured: bool) -> RunResult {
    let outcome = receipt.outcome().await;
    let outcome = match agent.ctx().get::<Jobs>() {
        // Boxed, so that a child without any does not hold the room.
        Some(jobs) if jobs.running(&agent) > 0 || !agent.is_idle() => {
            Box::pin(with_jobs(jobs, agent.clone(), outcome, structured)).await
        }
        Some(_) | None => outcome,
    };
    result(agent.session(), outcome, structured)
}

fn result(session: &Session, outcome: TurnOutcome, structured: bool) -> RunResult {
    let TurnOutcome { reason, output, usage, .. } = outcome;
    let output =
        output.map_or_else(Vec::new, |message| message.content.iter().filter(|part| is_said(part)).cloned().collect());
    let denials = denials_in(&session.snapshot(), session.first_live_seq());
    let message = match &reason {
        TurnReason::Error { message } | TurnReason::Blocked { message } => message.clone(),
        TurnReason::Aborted { cause } => cause.clone(),
        TurnReason::Completed | TurnReason::MaxTokens | TurnReason::Interrupted => None,
    };
    let ended = RunResult { reason: StopReason::from(&reason), output, structured: None, message, usage, denials };
    match structured {
        true => with_what_was_handed_in(ended, session),
        false => ended,
    }
}

/// Waits for what goes on in the background, and ends what the child does not wait for: its denials count too.
async fn with_jobs(jobs: Arc<Jobs>, agent: AgentRef, mut outcome: TurnOutcome, structured: bool) -> TurnOutcome {
    let session = agent.session().clone();
    let goes_on =
        move |reason: &TurnReason| *reason == TurnReason::Completed && !(structured && has_handed_in(&session));
    if goes_on(&outcome.reason) {
        let finished = jobs.finished(&agent, move |last| goes_on(&last.reason));
        let was_cancelled = agent.ctx().cancelled().run_until_cancelled(finished).await.is_none();
        outcome = last_turn(agent.session(), outcome);
        if was_cancelled && outcome.reason == TurnReason::Completed {
            // A turn that was done already: the task was not.
            outcome.reason = TurnReason::Aborted { cause: None };
        }
    }
    jobs.kill_all(&agent).await;
    outcome
}

fn has_handed_in(session: &Session) -> bool {
    Composed::handed_in(session).is_some()
}

/// A child that handed its result in has done its task, whatever became of its turn afterwards. One that was to and
/// completed without doing so has failed.
fn with_what_was_handed_in(ended: RunResult, session: &Session) -> RunResult {
    match Composed::handed_in(session) {
        Some(structured) => {
            RunResult { reason: StopReason::Completed, structured: Some(structured), message: None, ..ended }
        }
        None if ended.reason == StopReason::Completed => {
            let message = format!("the child finished without handing its result in with `{RESULT_TOOL}`");
            RunResult { reason: StopReason::Error, message: Some(message.into()), ..ended }
        }
        None => ended,
    }
}

/// Whether a part of a message is for others to read.
fn is_said(part: &Content) -> bool {
    match part {
        Content::Text { .. } | Content::Image { .. } => true,
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => false,
    }
}
