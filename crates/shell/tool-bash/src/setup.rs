//! Each agent's command line.

use std::path::PathBuf;
use std::sync::Arc;

use agent::{AgentRef, AgentSetup};
use async_trait::async_trait;
use context::BoxError;
use sandbox::{Network, SandboxProvider, Workspace};
use sandbox_policy::SandboxPolicy;
use scratch::Scratch;
use shell::{ConfinedShell, Parts, Shell, Temporary};
use subprocess::Environment;

use crate::Config;

/// This executable, also after its file was replaced.
const THIS: &str = "/proc/self/exe";

pub(crate) struct Setup {
    policy: Arc<SandboxPolicy>,
    helper: PathBuf,
    network: Option<Network>,
    temporary: Temporary,
}

impl Setup {
    pub(crate) fn new(policy: Arc<SandboxPolicy>, config: Config) -> Self {
        let Config { escalation: _, network, temporary, helper } = config;
        Self { policy, helper: helper.unwrap_or_else(|| THIS.into()), network, temporary }
    }
}

#[async_trait]
impl AgentSetup for Setup {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        let ctx = agent.ctx().clone();
        let workspace = ctx.get::<Workspace>().ok_or(
            "no `Workspace` in the agent's realm: list a plugin that provides it, such as `fs-sandbox`, before `tool-bash`",
        )?;
        let parts = Parts {
            workspace: Workspace::clone(&workspace),
            mode: self.policy.source_for(agent.session()),
            provider: ctx.get::<dyn SandboxProvider>(),
            helper: self.helper.clone(),
            env: Environment::inherited(),
            network: self.network,
            temporary: self.temporary,
            scratch: ctx.get::<Scratch>(),
        };
        let open = move || ConfinedShell::open(&ctx, parts);
        let shell = agent.ctx().spawn_blocking("shell", open)?.await.map_err(|_| "opening the shell panicked")??;
        Ok(agent.ctx().provide::<dyn Shell>(Arc::new(shell))?)
    }
}
