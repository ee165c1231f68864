use std::sync::Arc;

use context::Ctx;
use session::{Session, SessionId};
use tokio_util::sync::CancellationToken;

/// One call of a tool, as the pipeline and the tool see it.
#[derive(Clone)]
pub struct Call {
    /// The agent's scope: look-ups, and the owner of what the tool starts.
    pub ctx: Ctx,
    /// The agent's session.
    pub session: Session,
    /// Pairs the call with its result.
    pub call_id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// The raw string that the model produced.
    pub arguments: Arc<str>,
    /// Fires when the turn is cancelled.
    pub cancelled: CancellationToken,
}

/// Something that a running tool wants to show. Emitted in the agent's realm; never logged.
#[derive(Clone, Debug)]
pub struct ToolProgress {
    /// The agent's session.
    pub session: SessionId,
    /// The call.
    pub call_id: Arc<str>,
    /// One line or a piece of output.
    pub text: Arc<str>,
}

impl Call {
    /// A call outside of any turn, as front doors and tests make them.
    pub fn new(ctx: &Ctx, session: Session, name: impl Into<Arc<str>>, arguments: impl Into<Arc<str>>) -> Self {
        Self {
            ctx: ctx.clone(),
            session,
            call_id: "call".into(),
            name: name.into(),
            arguments: arguments.into(),
            cancelled: ctx.cancelled().child_token(),
        }
    }

    /// Shows something while the call runs.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        let progress = ToolProgress { session: self.session.id(), call_id: self.call_id.clone(), text: text.into() };
        self.ctx.realm().emit(&progress);
    }
}
