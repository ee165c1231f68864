use std::sync::Arc;

use agent::{AgentRef, CreateError};
use async_trait::async_trait;
use context::{BoxError, Boxed, Ctx};
use sandbox::one_line;
use session::{CaptureError, Delegation, FlushError, SessionId};

use crate::{BudgetSpent, Request, RunId, RunResult, UnknownTools};

/// A kind of child. Registered by name with [`Subagents::register`](crate::Subagents::register); a stranger writes one
/// against public API alone.
#[async_trait]
pub trait SubagentProvider: Send + Sync {
    /// Which start-time options it honours. A request for one that it does not list is refused before anything exists,
    /// also where nobody asked for it but the parent is held to it and hands it down: a filter, a limit of depth.
    fn offers(&self) -> &'static [Capability] {
        &[]
    }

    /// Whether the child sees the parent's conversation. Tools tell the model so.
    fn inherits_parent_context(&self) -> bool;

    /// Returns when the child is published. Whatever it makes it registers in `start.ctx`, whose closing is the child's
    /// disposal; there is nothing else to implement. If the start is given up, `start.ctx` closes, and this is dropped
    /// when that is done.
    async fn start(&self, start: Start) -> Result<Started, StartError>;
}

/// A start-time option that not every provider can honour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// A result by a schema, which it hands in with a tool.
    OutputSchema,
    /// A limit of depth.
    DepthLimit,
    /// Fewer tools.
    ToolFilter,
    /// Another persona.
    Persona,
}

/// Everything that a provider is given. The delegation was captured at the caller's call.
pub struct Start {
    /// The run's scope, which looks up the app's realm.
    pub ctx: Ctx,
    /// The run's id.
    pub run: RunId,
    /// The provider's own name.
    pub provider: Arc<str>,
    /// Who delegates.
    pub parent: AgentRef,
    /// What it hands down.
    pub delegation: Delegation,
    /// What it asks.
    pub request: Request,
}

/// A published child.
pub struct Started {
    /// Its session, if it has one in this process.
    pub child: Option<SessionId>,
    /// Settles however the child ends, also when the run's scope is closed.
    pub result: Boxed<'static, RunResult>,
}

/// Why there is no child. Nothing of it is left, and nothing was announced.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nobody registered the name, or whoever did is gone.
    #[error("no subagent provider named `{name}`; there are: {}", .known.join(", "))]
    UnknownProvider {
        /// What was asked for.
        name: Arc<str>,
        /// What there is.
        known: Vec<String>,
    },
    /// The provider cannot honour an option.
    #[error("`{provider}` does not support {capability}")]
    Unsupported {
        /// The provider.
        provider: Arc<str>,
        /// The option.
        capability: Capability,
    },
    /// The child would be too far down.
    #[error("a child at depth {depth} would pass the limit of {limit}{}", forbids(*.limit))]
    TooDeep {
        /// The child's.
        depth: u32,
        /// The deployment's, the request's or what the parent is held to, whichever is lowest.
        limit: u32,
    },
    /// The tree of agents has used up what it may.
    #[error(transparent)]
    Budget(#[from] BudgetSpent),
    /// The filter names tools that there are not.
    #[error(transparent)]
    UnknownTools(#[from] UnknownTools),
    /// The model that was asked for has no adapter.
    #[error("the child's model cannot be used: {0}")]
    Model(#[from] llm::UnknownProvider),
    /// What the child inherits could not be captured.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The parent's log could not be made durable, so the child cannot point into it.
    #[error("the parent's log could not be made durable: {0}")]
    ParentLog(#[source] FlushError),
    /// The parent ends.
    #[error("the parent is closing")]
    ParentClosing,
    /// Somebody cancelled, or dropped the start.
    #[error("the start was cancelled")]
    Cancelled,
    /// The child's agent could not be created.
    #[error("the child could not be created: {0}")]
    Create(#[from] CreateError),
    /// The provider has a bug.
    #[error("`{provider}` panicked while it started a child")]
    Panicked {
        /// The provider.
        provider: Arc<str>,
    },
    /// The provider failed in its own way.
    #[error("`{provider}` failed to start a child: {}", one_line(&.source.to_string()))]
    Provider {
        /// The provider.
        provider: Arc<str>,
        /// What it said.
        source: BoxError,
    },
}

impl Started {
    /// A child that has no session in this process.
    pub fn elsewhere(result: impl Future<Output = RunResult> + Send + 'static) -> Self {
        Self { child: None, result: Box::pin(result) }
    }
}

impl std::fmt::Display for Capability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::OutputSchema => "an output schema",
            Self::DepthLimit => "a limit of depth",
            Self::ToolFilter => "a tool filter",
            Self::Persona => "a persona",
        })
    }
}

fn forbids(limit: u32) -> &'static str {
    if limit == 0 { ": delegation is forbidden" } else { "" }
}
