//! The tool itself.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use agent::AgentRef;
use async_trait::async_trait;
use llm::Content;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use subagent::{DelegationReport, Request, Run, RunResult, StopReason};
use tools::{Call, Concurrency, Tool, ToolOutput, TypedTool, code};

use crate::background::in_background;
use crate::text::Answer;
use crate::{Config, Services, text};

/// The longest label, in characters: it is for people, and listings read it from the beginning of a log.
const LABEL_LIMIT: usize = 200;

/// The tool for a provider that says this of itself.
pub(crate) fn tool(config: &Config, services: &Services, inherits_parent_context: bool) -> Arc<dyn Tool> {
    let (config, services) = (config.clone(), services.clone());
    let description = text::description(inherits_parent_context, config.output_schema.is_some());
    match services.jobs {
        Some(_) => tools::typed(Delegate::<WhenAsked> { config, services, description, args: PhantomData }),
        None => tools::typed(Delegate::<Now> { config, services, description, args: PhantomData }),
    }
}

struct Delegate<A> {
    config: Config,
    services: Services,
    description: String,
    args: PhantomData<fn() -> A>,
}

/// What a model asks.
struct Task {
    description: String,
    prompt: String,
    run_in_background: bool,
}

// A doc comment on either would be a part of the schema, and so of every request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Now {
    /// The task in three to five words, for people who watch.
    description: String,
    /// The whole task: what to do, what is known, what to report back.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WhenAsked {
    /// The task in three to five words, for people who watch.
    description: String,
    /// The whole task: what to do, what is known, what to report back.
    prompt: String,
    /// Answer with a job id at once; the result is told to you later. The child ends when you do.
    #[serde(default)]
    run_in_background: bool,
}

impl From<Now> for Task {
    fn from(Now { description, prompt }: Now) -> Self {
        Self { description, prompt, run_in_background: false }
    }
}

impl From<WhenAsked> for Task {
    fn from(WhenAsked { description, prompt, run_in_background }: WhenAsked) -> Self {
        Self { description, prompt, run_in_background }
    }
}

#[async_trait]
impl<A> TypedTool for Delegate<A>
where
    A: Into<Task> + DeserializeOwned + JsonSchema + Send + 'static,
{
    type Args = A;

    fn name(&self) -> &str {
        &self.config.tool
    }

    fn description(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.description)
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    /// Longer than the tools of the child, and of its children, so that what they were denied is still told.
    fn cancel_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn run(&self, args: A, call: &Call) -> ToolOutput {
        let Some(parent) = self.services.agents.get(call.session.id()) else {
            return ToolOutput::error(code::FAILED, "this session has no live agent that could delegate");
        };
        let Task { description, prompt, run_in_background } = args.into();
        let label: Arc<str> = description.chars().take(LABEL_LIMIT).collect::<String>().into();
        let request = Request { call: Some(call.call_id.clone()), ..self.request(label, prompt) };
        match &self.services.jobs {
            Some(jobs) if run_in_background => {
                in_background(&self.config, &self.services, jobs, &parent, request, call).await
            }
            Some(_) | None => self.now(&parent, request, call).await,
        }
    }
}

impl<A> Delegate<A> {
    fn request(&self, label: Arc<str>, prompt: String) -> Request {
        Request {
            label: Some(label),
            model: self.config.model.clone(),
            persona: self.config.persona.clone(),
            tool_filter: self.config.tools.clone(),
            max_depth: self.config.max_depth,
            output_schema: self.config.output_schema.clone(),
            ..Request::new(prompt)
        }
    }

    async fn now(&self, parent: &AgentRef, request: Request, call: &Call) -> ToolOutput {
        let request = Request { cancelled: call.cancelled.child_token(), ..request };
        let run = match self.services.subagents.start(parent, &self.config.provider, request).await {
            Ok(run) => run,
            Err(error) => return ToolOutput::error(code::FAILED, text::not_started(&error)),
        };
        run.result().await;
        let Finished { reason, answer, report } = wind_up(&run, &self.config.provider).await;
        let Answer { said, notes } = answer;
        // What the child says stands alone: it can be read as JSON, and nothing in it passes for a note of ours.
        let content = match notes.is_empty() {
            true => vec![Content::text(said)],
            false => vec![Content::text(said), Content::text(notes)],
        };
        let error = match reason {
            StopReason::Completed => None,
            StopReason::Aborted => Some(code::CANCELLED.into()),
            StopReason::MaxTokens | StopReason::Refusal | StopReason::Error => Some(code::FAILED.into()),
        };
        ToolOutput { content, error, ..ToolOutput::text("") }.with_meta(&report)
    }
}

/// A child of which nothing is left.
pub(crate) struct Finished {
    pub(crate) reason: StopReason,
    pub(crate) answer: Answer,
    pub(crate) report: DelegationReport,
}

/// Ends a child that has not ended, and tells what came of it.
pub(crate) async fn wind_up(run: &Run, provider: &Arc<str>) -> Finished {
    let disposed = run.dispose().await;
    let result = run.result().await;
    let RunResult { reason, usage, denials, .. } = result.clone();
    let answer = text::answer(result, disposed.err().map(|error| error.to_string()).as_deref());
    let (provider, child) = (provider.clone(), run.child());
    Finished { reason, answer, report: DelegationReport { provider, child, stop_reason: reason, usage, denials } }
}
