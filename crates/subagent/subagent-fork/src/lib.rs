//! A child that starts with its parent's conversation.
//!
//! *Owns:* the name `fork` and the choice of seed.
//! *Never:* the parent's open turn, a copy of the history in memory, or anything that the shared driver does.
//!
//! The seed is everything through the parent's last closed turn, however that ended. A parent that has closed none has a
//! child with an empty conversation. What waited in the parent's inbox, and what it asked a person, is history there.
//!
//! ```
//! # use context::{Plugins, Scope}; use subagent::Subagents;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # app.provide(session::Sessions::new())?;
//! # app.provide(agent::Agents::new(&app))?;
//! let plugins = Plugins::new().with(subagent_fork::Fork, ()).with(subagent::SubagentPlugin, Default::default());
//! plugins.start(&app).await?;
//! let fork = app.get::<Subagents>().unwrap().providers().get("fork").unwrap();
//! assert!(fork.inherits_parent_context());
//! # app.close().await?; Ok(()) }
//! ```

use std::sync::Arc;

use agent::Agents;
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use session::Seed;
use subagent::Subagents;
use subagent_inprocess::InProcess;

/// The name of the provider.
pub const NAME: &str = "fork";

/// Registers the provider.
pub struct Fork;

#[async_trait]
impl Plugin for Fork {
    type Config = ();

    fn name(&self) -> &'static str {
        "subagent-fork"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        Ok(ctx.own(subagents.register(NAME, Arc::new(InProcess::new(agents, Seed::ClosedTurns)))?)?)
    }
}
