//! What a model is offered.

use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use llm::{Content, ToolSchema};
use subagent::{RunResult, Start, StartError, Started, SubagentProvider, Subagents};
use tool_subagent::{Config, SubagentTool};
use tools::{Call, Concurrency, Runner, Tool, code};

use crate::stage::{Stage, within};

/// A kind of child that knows the conversation, from a stranger's crate.
struct Knowing;

#[async_trait]
impl SubagentProvider for Knowing {
    fn inherits_parent_context(&self) -> bool {
        true
    }

    async fn start(&self, start: Start) -> Result<Started, StartError> {
        let echo = RunResult::completed(vec![Content::text(format!("I know, and: {}", start.request.prompt))]);
        Ok(Started::elsewhere(std::future::ready(echo)))
    }
}

#[async_trait]
impl Plugin for Knowing {
    type Config = Config;

    fn name(&self) -> &'static str {
        "knowing"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>()]
    }

    /// Registers itself, and the tool that delegates to it.
    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().unwrap();
        ctx.own(subagents.register("knowing", Arc::new(Knowing))?)?;
        SubagentTool.apply(ctx, config).await
    }
}

fn offered(stage: &Stage, name: &str) -> ToolSchema {
    let tool = stage.app.realm().named::<dyn Tool>(name).unwrap();
    assert_eq!(tool.concurrency(), Concurrency::Shared, "siblings run side by side");
    tool.schema().clone()
}

fn seen(ToolSchema { name, description, input_schema }: &ToolSchema) -> String {
    format!("{name}: {description}\n{input_schema:#}")
}

// D-20
#[tokio::test]
async fn the_tool_is_seen_like_this() {
    within(async {
        let config = Config { tool: "ask_knowing".into(), provider: "knowing".into() };
        let stage = Stage::with(|plugins| plugins.with(Knowing, config), |_| {}).await.unwrap();
        insta::assert_snapshot!(seen(&offered(&stage, "subagent")), @r#"
        subagent: Hands a task to a child agent. It starts with an empty conversation, so put everything it needs to know into the prompt. It works on its own in the same directory, with no more permissions than you have now, and returns its final message. Several calls in one response run at the same time.
        {
          "additionalProperties": false,
          "properties": {
            "description": {
              "description": "The task in three to five words, for people who watch.",
              "type": "string"
            },
            "prompt": {
              "description": "The whole task: what to do, what is known, what to report back.",
              "type": "string"
            }
          },
          "required": [
            "description",
            "prompt"
          ],
          "type": "object"
        }
        "#);
        let knowing = offered(&stage, "ask_knowing");
        insta::assert_snapshot!(knowing.description, @"Hands a task to a child agent that knows this conversation up to your last finished turn. It works on its own in the same directory, with no more permissions than you have now, and returns its final message. Several calls in one response run at the same time.");
        assert_eq!(knowing.input_schema, offered(&stage, "subagent").input_schema);
        assert_eq!(stage.answer("spawn via ask_knowing { what? }").await, "[ok] I know, and: what?");
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_tool_for_a_provider_that_is_not_there_does_not_start() {
    within(async {
        let lost = |plugins: context::Plugins| plugins.without("subagent-spawn").unwrap();
        let error = Stage::with(lost, |_| {}).await.err().unwrap();
        let source = std::error::Error::source(&error).unwrap().to_string();
        insta::assert_snapshot!(format!("{error}: {source}"), @"the plugin `tool-subagent` could not start: no subagent provider named `spawn` for the tool `subagent`");
    })
    .await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_what_would() {
    within(async {
        let stage = Stage::new().await;
        let answer = stage.answer(r#"call subagent {"description": "x", "prompt": "y", "cwd": "/"}"#).await;
        insta::assert_snapshot!(answer, @r#"[invalid-arguments] invalid arguments for `subagent`: unknown field `cwd`, expected `description` or `prompt` at line 1 column 41. Expected: {"description": string, "prompt": string}. Call it again with arguments that fit."#);
        let answer = stage.answer(r#"call subagent {"description": "x"}"#).await;
        insta::assert_snapshot!(answer, @r#"[invalid-arguments] invalid arguments for `subagent`: missing field `prompt` at line 1 column 20. Expected: {"description": string, "prompt": string}. Call it again with arguments that fit."#);
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_session_without_an_agent_delegates_nothing() {
    within(async {
        let stage = Stage::new().await;
        let session = stage.agent.session().house().create("/");
        let arguments = r#"{"description": "x", "prompt": "y"}"#;
        let call = Call::new(&stage.app, session, "subagent", arguments);
        let output = Runner::new(stage.app.realm()).run(call).await;
        assert_eq!(output.error.as_deref(), Some(code::FAILED));
        insta::assert_snapshot!(output.to_text(), @"this session has no live agent that could delegate");
        stage.app.close().await.unwrap();
    })
    .await;
}
