//! A child that starts with an empty conversation.
//!
//! *Owns:* the name `spawn` and the choice of seed.
//! *Never:* the parent's conversation, or anything that the shared driver does.
//!
//! ```
//! # use context::{Plugins, Scope}; use subagent::Subagents;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # app.provide(session::Sessions::new())?;
//! # app.provide(agent::Agents::new(&app))?;
//! let plugins = Plugins::new().with(subagent_spawn::Spawn, ()).with(subagent::SubagentPlugin, Default::default());
//! plugins.start(&app).await?;
//! let subagents = app.get::<Subagents>().unwrap();
//! assert_eq!(&*subagents.providers().list()[0].0, "spawn");
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
pub const NAME: &str = "spawn";

/// Registers the provider.
pub struct Spawn;

#[async_trait]
impl Plugin for Spawn {
    type Config = ();

    fn name(&self) -> &'static str {
        "subagent-spawn"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        Ok(ctx.own(subagents.register(NAME, Arc::new(InProcess::new(agents, Seed::Fresh)))?)?)
    }
}
