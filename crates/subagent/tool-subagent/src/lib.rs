//! The tool with which a model delegates.
//!
//! *Owns:* what the model sees of delegation: the tool's name, description and arguments, and the text of its result.
//! *Never:* a provider by type, policy, a child that outlives the call.
//!
//! ```
//! let config = tool_subagent::Config::default();
//! assert_eq!((&*config.tool, &*config.provider), ("subagent", "spawn"));
//! ```

mod text;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use agent::Agents;
use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use schemars::JsonSchema;
use serde::Deserialize;
use subagent::{DelegationReport, Request, RunResult, StopReason, Subagents};
use tools::{Call, Concurrency, ToolOutput, TypedTool, code};

/// The longest label, in characters: it is for people, and listings read it from the beginning of a log.
const LABEL_LIMIT: usize = 200;

/// Registers one delegation tool. Listed once for each tool, under names of their own.
pub struct SubagentTool;

/// Which tool delegates to which provider.
#[derive(Clone, Debug)]
pub struct Config {
    /// What the model calls it.
    pub tool: Arc<str>,
    /// Who runs the children.
    pub provider: Arc<str>,
}

impl Default for Config {
    fn default() -> Self {
        Self { tool: "subagent".into(), provider: "spawn".into() }
    }
}

#[async_trait]
impl Plugin for SubagentTool {
    type Config = Config;

    fn name(&self) -> &'static str {
        "tool-subagent"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>(), Need::of::<Agents>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().ok_or("no `Subagents` service")?;
        let agents = ctx.get::<Agents>().ok_or("no `Agents` service")?;
        let provider = subagents.providers().get(&config.provider);
        let inherits = provider
            .ok_or_else(|| format!("no subagent provider named `{}` for the tool `{}`", config.provider, config.tool))?
            .inherits_parent_context();
        let description = text::description(inherits);
        Ok(tools::register(ctx, Delegate { config, description, subagents, agents })?)
    }
}

struct Delegate {
    config: Config,
    description: &'static str,
    subagents: Arc<Subagents>,
    agents: Arc<Agents>,
}

// A doc comment here would be a part of the schema, and so of every request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The task in three to five words, for people who watch.
    description: String,
    /// The whole task: what to do, what is known, what to report back.
    prompt: String,
}

#[async_trait]
impl TypedTool for Delegate {
    type Args = Args;

    fn name(&self) -> &str {
        &self.config.tool
    }

    fn description(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.description)
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    /// Longer than the tools of the child, and of its children, so that what they were denied is still told.
    fn cancel_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn run(&self, args: Args, call: &Call) -> ToolOutput {
        let Some(parent) = self.agents.get(call.session.id()) else {
            return ToolOutput::error(code::FAILED, "this session has no live agent that could delegate");
        };
        let request = Request {
            label: Some(args.description.chars().take(LABEL_LIMIT).collect::<String>().into()),
            cancelled: call.cancelled.child_token(),
            ..Request::new(args.prompt)
        };
        let run = match self.subagents.start(&parent, &self.config.provider, request).await {
            Ok(run) => run,
            Err(error) => return ToolOutput::error(code::FAILED, text::not_started(&error)),
        };
        let result = run.result().await.clone();
        let disposed = run.dispose().await;
        let report = DelegationReport {
            provider: self.config.provider.clone(),
            child: run.child(),
            stop_reason: result.reason,
            usage: result.usage,
            denials: result.denials.clone(),
        };
        output(result, disposed.err().map(|error| error.to_string())).with_meta(&report)
    }
}

fn output(result: RunResult, disposal: Option<String>) -> ToolOutput {
    let text = text::result(&result, disposal.as_deref());
    match result.reason {
        StopReason::Completed => ToolOutput::text(text),
        StopReason::Aborted => ToolOutput::error(code::CANCELLED, text),
        StopReason::MaxTokens | StopReason::Refusal | StopReason::Error => ToolOutput::error(code::FAILED, text),
    }
}
