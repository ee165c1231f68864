use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin, Stop};
use session::Sessions;
use subagent::{RunResult, Start, StartError, Started, StopReason, SubagentProvider, Subagents};
use subagent_subprocess::{INHERITS_PARENT_CONTEXT, Unconfined, prepare};
use tokio::sync::oneshot;

use crate::live::{Line, Live};
use crate::{BadConfig, Config};

/// A provider of children that speak the protocol.
pub struct Acp(Arc<Config>);

/// Registers a [provider](Acp) for each kind of children, under names of their own.
pub struct SubagentAcp;

impl Acp {
    /// Children of this kind.
    ///
    /// # Errors
    ///
    /// None could be started.
    pub fn new(config: Config) -> Result<Self, BadConfig> {
        config.check()?;
        Ok(Self(Arc::new(config)))
    }
}

#[async_trait]
impl SubagentProvider for Acp {
    fn inherits_parent_context(&self) -> bool {
        INHERITS_PARENT_CONTEXT
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        let prepared = prepare(&start, &self.0.settings).await?;
        let Start { ctx, run, provider, parent, delegation, request } = start;
        let (parent, child, prompt) = (parent.id(), delegation.child(), request.prompt);
        let live = Live { ctx: ctx.clone(), config: self.0.clone(), run, provider, parent, child, prompt, prepared };
        let (ready, is_ready) = oneshot::channel();
        let (go, gone) = oneshot::channel();
        let (result, settled) = oneshot::channel();
        let living = live.live(Line { ready, go: gone, result });
        ctx.spawn_fallible("acp child", Stop::Join, living).map_err(|_| StartError::ParentClosing)?;
        is_ready.await.unwrap_or(Err(StartError::ParentClosing))?;
        Ok(Started::elsewhere(async move {
            // The start was announced: the first thing that the child is told is its task.
            let _ended = go.send(());
            settled.await.unwrap_or_else(|_| RunResult::ended(StopReason::Aborted))
        }))
    }
}

#[async_trait]
impl Plugin for SubagentAcp {
    type Config = Vec<Config>;

    fn name(&self) -> &'static str {
        "subagent-acp"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>(), Need::of::<Sessions>()]
    }

    async fn apply(&self, ctx: &Ctx, configs: Vec<Config>) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents` service")?;
        ctx.get::<Sessions>().ok_or("no `Sessions` service")?.learn::<Unconfined>()?;
        for config in configs {
            let name = config.name.clone();
            ctx.own(subagents.register(name, Arc::new(Acp::new(config)?))?)?;
        }
        Ok(())
    }
}
