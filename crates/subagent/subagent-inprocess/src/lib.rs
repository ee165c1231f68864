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

use agent::{Agents, Receipt, TurnOutcome};
use async_trait::async_trait;
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
pub async fn run(agents: &Agents, start: Start, seed: Seed) -> Result<Started, StartError> {
    let Composed { mut agent, structured } = compose(agents, start, seed).await?;
    let receipt = agent.prompted().expect("the composition prompts the child");
    let agent = agent.leave();
    let session = agent.session().clone();
    Ok(Started { child: Some(agent.id()), result: Box::pin(finish(receipt, session, structured)) })
}

async fn finish(receipt: Receipt, session: Session, structured: bool) -> RunResult {
    let TurnOutcome { reason, output, usage, .. } = receipt.outcome().await;
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
        true => with_what_was_handed_in(ended, &session),
        false => ended,
    }
}

/// A child that was to hand its result in and completed without doing so has failed.
fn with_what_was_handed_in(ended: RunResult, session: &Session) -> RunResult {
    if ended.reason != StopReason::Completed {
        return ended;
    }
    match Composed::handed_in(session) {
        Some(structured) => RunResult { structured: Some(structured), ..ended },
        None => {
            let message = format!("the child finished without handing its result in with `{RESULT_TOOL}`");
            RunResult { reason: StopReason::Error, message: Some(message.into()), ..ended }
        }
    }
}

/// Whether a part of a message is for others to read.
fn is_said(part: &Content) -> bool {
    match part {
        Content::Text { .. } | Content::Image { .. } => true,
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult { .. } => false,
    }
}
