use std::path::PathBuf;
use std::sync::Arc;

use agent::{AgentRef, AgentSetup};
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use fs::FileSystem;
use sandbox::Workspace;
use sandbox_policy::SandboxPolicy;
use scratch::Scratch;

use crate::Fences;

/// Gives every agent a [`Fence`](crate::Fence) around its session's directory, under its session's mode; and, for other
/// enforcers, the [`Workspace`] that it took its boundary from, and the [`Scratch`] that its temporary directory is in, if
/// that is its own.
pub struct FsSandboxPlugin;

/// What the fences of an app have in common.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What is Tether's own, such as its logs, its settings, its keys: directories and files, absolute. Under
    /// confinement never for tools. None of them need exist.
    pub private: Vec<PathBuf>,
    /// What else is not written under confinement: absolute, or relative to each session's directory.
    pub protected: Vec<PathBuf>,
    /// Which temporary directory is writable where the session's own is.
    pub tmp: Tmp,
}

/// The temporary directory of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tmp {
    /// None.
    #[default]
    None,
    /// One of its own below the machine's, made with the agent and removed with it.
    Private,
    /// The machine's.
    Shared,
}

impl Config {
    /// Where a session works whose directory is `root`; without its temporary directory.
    pub fn workspace(&self, root: impl Into<PathBuf>) -> Workspace {
        let workspace = self.private.iter().fold(Workspace::new(root), Workspace::home);
        self.protected.iter().fold(workspace, Workspace::protect)
    }
}

#[async_trait]
impl Plugin for FsSandboxPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "fs-sandbox"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<SandboxPolicy>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let policy = ctx.get::<SandboxPolicy>().ok_or("no `SandboxPolicy` service")?;
        let setup = Setup { fences: Fences::default(), policy, config };
        Ok(ctx.register::<dyn AgentSetup>("fs-sandbox", Arc::new(setup))?)
    }
}

struct Setup {
    fences: Fences,
    policy: Arc<SandboxPolicy>,
    config: Config,
}

#[async_trait]
impl AgentSetup for Setup {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        let workspace = self.config.workspace(&**agent.session().header().cwd());
        let workspace = match self.config.tmp {
            Tmp::None => workspace,
            Tmp::Shared => workspace.temp(std::env::temp_dir()),
            Tmp::Private => {
                let ctx = agent.ctx().clone();
                let making = agent.ctx().spawn_blocking("temporary directory", move || Scratch::make(&ctx))?;
                let made = making.await.map_err(|_| "making a temporary directory panicked")?;
                let tmp = std::env::temp_dir();
                let made =
                    made.map_err(|error| format!("no temporary directory can be made in {}: {error}", tmp.display()))?;
                let workspace = workspace.temp(made.tmp());
                agent.ctx().provide(Arc::new(made))?;
                workspace
            }
        };
        let (fences, mode, ctx) = (self.fences.clone(), self.policy.source_for(agent.session()), agent.ctx().clone());
        let open = move || fences.open(workspace, mode, ctx);
        let fence = agent.ctx().spawn_blocking("fence", open)?.await.map_err(|_| "opening the fence panicked")??;
        agent.ctx().provide::<Workspace>(Arc::new(fence.workspace().clone()))?;
        Ok(agent.ctx().provide::<dyn FileSystem>(Arc::new(fence))?)
    }
}
