//! The tools with which a model looks after its jobs.
//!
//! *Owns:* what the model sees of jobs: `job_list`, `job_output`, `job_kill`, their arguments and answers.
//! *Never:* a job of its own, or one of somebody else than the agent that calls.
//!
//! ```
//! # use context::{Plugins, Scope}; use tools::Tool;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! let plugins = Plugins::new()
//!     .with(tool_jobs::JobTools, ())
//!     .with(jobs::JobsPlugin, jobs::Config::default())
//!     .with(session::SessionsPlugin, ())
//!     .with(agent::AgentsPlugin, ());
//! plugins.start(&app).await?;
//! let names: Vec<_> = app.realm().all_named::<dyn Tool>().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["job_list".into(), "job_output".into(), "job_kill".into()]);
//! # app.close().await?; Ok(()) }
//! ```

mod kill;
mod list;
mod output;

use std::sync::Arc;

use agent::{AgentRef, Agents};
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use jobs::{JobInfo, JobState, Jobs, Reader};
use tools::{Call, ToolOutput, code};

/// Registers the tools, and has notices name the one that reads.
pub struct JobTools;

#[async_trait]
impl Plugin for JobTools {
    type Config = ();

    fn name(&self) -> &'static str {
        "tool-jobs"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Jobs>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        let jobs = ctx.get::<Jobs>().ok_or("no `Jobs` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        let owned = Owned { jobs, agents };
        tools::register(ctx, list::List(owned.clone()))?;
        tools::register(ctx, output::Output(owned.clone()))?;
        tools::register(ctx, kill::Kill(owned))?;
        Ok(ctx.provide(Arc::new(Reader(output::NAME.into())))?)
    }
}

/// The jobs of whoever calls.
#[derive(Clone)]
struct Owned {
    jobs: Arc<Jobs>,
    agents: Arc<Agents>,
}

impl Owned {
    fn owner(&self, call: &Call) -> Result<AgentRef, ToolOutput> {
        let no_agent = || ToolOutput::error(code::FAILED, "this session has no live agent that could have jobs");
        self.agents.get(call.session.id()).ok_or_else(no_agent)
    }
}

fn failed(error: impl std::fmt::Display) -> ToolOutput {
    ToolOutput::error(code::FAILED, error.to_string())
}

/// `job-1 (bash: cargo test) is running, 12 s so far`.
fn standing(info: &JobInfo) -> String {
    let seconds = info.time.as_secs();
    match info.state {
        JobState::Running => format!("{info} is running, {seconds} s so far"),
        JobState::Completed => format!("{info} completed after {seconds} s"),
        JobState::Failed => format!("{info} failed after {seconds} s"),
        JobState::Killed => format!("{info} was killed after {seconds} s"),
    }
}
