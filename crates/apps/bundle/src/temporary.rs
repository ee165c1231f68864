//! Where agents' temporary directories are not.

use std::path::PathBuf;
use std::sync::Arc;

use agent::{AgentRef, AgentSetup};
use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};

/// Has each agent's temporary directory made outside of its own directory: commands write in that, and would write in what is
/// kept of their output. Listed before whatever makes it.
pub(crate) struct Apart;

#[async_trait]
impl Plugin for Apart {
    type Config = ();

    fn name(&self) -> &'static str {
        "apart"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(ctx.register::<dyn AgentSetup>("apart", Arc::new(Setup))?)
    }
}

struct Setup;

#[async_trait]
impl AgentSetup for Setup {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        let root = PathBuf::from(&**agent.session().header().cwd());
        Ok(agent.ctx().provide(Arc::new(scratch::Apart(root)))?)
    }
}
