//! Commands, for a model: `bash`.
//!
//! *Owns:* the tool, what a model sees of a command and of its end, the job that a command in the background is, and the
//! plugin that gives each agent its [`Shell`].
//! *Never:* confinement (the provider's), the answer to an ask, what a command may do.
//!
//! ```
//! # use context::{Plugins, Scope}; use tools::Tool;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! let plugins = Plugins::new()
//!     .with(session::SessionsPlugin, ())
//!     .with(agent::AgentsPlugin, ())
//!     .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: sandbox::Mode::ReadOnly })
//!     .with(fs_sandbox::FsSandboxPlugin, Default::default())
//!     .with(tool_bash::BashTool, tool_bash::Config::default());
//! plugins.start(&app).await?;
//! let bash = app.realm().named::<dyn Tool>("bash").expect("the plugin registers it");
//! let arguments = bash.schema().input_schema["properties"].as_object().expect("it has some");
//! assert!(!arguments.contains_key("run_in_background"), "there are no jobs in this app");
//! # app.close().await?; Ok(()) }
//! ```

mod background;
mod bash;
mod setup;
mod text;

use std::path::PathBuf;
use std::sync::Arc;

use agent::{AgentSetup, Agents};
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use jobs::Jobs;
use sandbox::Network;
use sandbox_policy::SandboxPolicy;
use shell::Temporary;
use tools::Tool;
use user_approval::Escalation;

pub use bash::{DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS};
pub use text::{CommandRan, CommandStarted, Held};

#[cfg(doc)]
use shell::Shell;

/// Registers the tool for every agent of the app, and gives each agent its [`Shell`], over the `Workspace` that its realm
/// has: a plugin before this one provides that. Whether there is a background is decided here, by whether there are jobs.
pub struct BashTool;

/// How commands are run.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Whether a call may ask for more.
    pub escalation: Escalation,
    /// What confined commands may do on the network, where that is not up to the mode.
    pub network: Option<Network>,
    /// Whose the temporary directory of the workspace is.
    pub temporary: Temporary,
    /// The executable that begins its `main` with `subprocess::helper::run_if_asked`; this one, if there is none.
    pub helper: Option<PathBuf>,
}

#[async_trait]
impl Plugin for BashTool {
    type Config = Config;

    fn name(&self) -> &'static str {
        "tool-bash"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<SandboxPolicy>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let policy = ctx.get::<SandboxPolicy>().ok_or("no `SandboxPolicy` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        let escalation = config.escalation;
        let tool = bash::tool(escalation, ctx.get::<Jobs>().map(|jobs| background::Background { jobs, agents }));
        ctx.register::<dyn AgentSetup>("tool-bash", Arc::new(setup::Setup::new(policy, config)))?;
        Ok(ctx.register::<dyn Tool>(tool.schema().name.clone(), tool)?)
    }
}
