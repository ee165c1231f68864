//! The tools with which a model delegates.
//!
//! *Owns:* what the model sees of delegation: the tools' names, descriptions and arguments, the text of a result, and the
//! job that a child in the background is.
//! *Never:* a provider by type, policy, a child that outlives its call or its job.
//!
//! A tool is there while its provider is. It comes and goes with it, and its description follows it:
//!
//! ```
//! # use context::{Plugins, Scope}; use subagent::Subagents; use tool_subagent::*; use tools::Tool;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # let plugins = Plugins::new().with(session::SessionsPlugin, ()).with(agent::AgentsPlugin, ());
//! # plugins.with(subagent::SubagentPlugin, Default::default()).start(&app).await?;
//! let configs = defaults();
//! assert_eq!((&*configs[0].tool, &*configs[0].provider), ("subagent", "spawn"));
//! Plugins::new().with(SubagentTools, configs.clone()).start(&app).await?;
//! assert!(app.realm().named::<dyn Tool>("subagent").is_none());
//! let unserved = check_served(&*app.get::<Subagents>().unwrap(), &configs).unwrap_err();
//! assert_eq!(unserved.to_string(), "the tool `subagent` delegates to `spawn` and the tool `subagent_fork` to `fork`, \
//!     which are no providers; there are none");
//! # app.close().await?; Ok(()) }
//! ```

mod background;
mod config;
mod delegate;
mod offer;
mod text;

use std::sync::Arc;

use agent::Agents;
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use jobs::Jobs;
use subagent::Subagents;

pub use config::{Config, Unserved, check_served, defaults};
pub use offer::{InvalidName, ReservedName, ToolTwice};

/// Offers one delegation tool. For whoever brings a provider and its tool.
pub struct SubagentTool;

/// Offers the delegation tools that an app is configured with, independent of each other.
pub struct SubagentTools;

#[async_trait]
impl Plugin for SubagentTool {
    type Config = Config;

    fn name(&self) -> &'static str {
        "tool-subagent"
    }

    fn needs(&self) -> Vec<Need> {
        needs()
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        offer::begin(ctx, config, &Services::of(ctx)?)
    }
}

#[async_trait]
impl Plugin for SubagentTools {
    type Config = Vec<Config>;

    fn name(&self) -> &'static str {
        "tool-subagent"
    }

    fn needs(&self) -> Vec<Need> {
        needs()
    }

    async fn apply(&self, ctx: &Ctx, configs: Vec<Config>) -> Result<(), BoxError> {
        let services = Services::of(ctx)?;
        configs.into_iter().try_for_each(|config| offer::begin(ctx, config, &services))
    }
}

fn needs() -> Vec<Need> {
    vec![Need::of::<Subagents>(), Need::of::<Agents>()]
}

/// What the tools work with.
#[derive(Clone)]
struct Services {
    subagents: Arc<Subagents>,
    agents: Arc<Agents>,
    /// Decides once, before anybody sees a schema, whether there is a background.
    jobs: Option<Arc<Jobs>>,
}

impl Services {
    fn of(ctx: &Ctx) -> Result<Self, BoxError> {
        let subagents = ctx.get().ok_or("no `Subagents` service")?;
        let agents = ctx.get().ok_or("no `Agents` service")?;
        Ok(Self { subagents, agents, jobs: ctx.get() })
    }
}
