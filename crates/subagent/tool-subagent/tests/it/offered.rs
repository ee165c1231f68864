//! What a model is offered.

use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use llm::ToolSchema;
use serde_json::json;
use subagent::{OutputSchema, Subagents};
use tool_subagent::{Config, SubagentTool};
use tools::{Call, Concurrency, Runner, Tool, code};

use crate::doubles::Stranger;
use crate::stage::{Stage, within};

/// A provider from a stranger's crate, which brings its tool along.
struct Own;

#[async_trait]
impl Plugin for Own {
    type Config = Config;

    fn name(&self) -> &'static str {
        "own"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Subagents>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let subagents = ctx.get::<Subagents>().unwrap();
        ctx.own(subagents.register(config.provider.clone(), Arc::new(Stranger { inherits: true }))?)?;
        SubagentTool.apply(ctx, config).await
    }
}

fn seen(ToolSchema { name, description, input_schema }: &ToolSchema) -> String {
    format!("{name}: {description}\n{input_schema:#}")
}

// D-20
#[tokio::test]
async fn the_tools_are_seen_like_this() {
    within(async {
        let own = Config::new("ask_own", "own");
        let stage = Stage::with(|plugins| plugins.with(Own, own), |_| {}).await.unwrap();
        let offered = |name: &str| stage.offered(name).unwrap();
        insta::assert_snapshot!(seen(&offered("subagent")), @r#"
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
            },
            "run_in_background": {
              "default": false,
              "description": "Answer with a job id at once; the result is told to you later. The child ends when you do.",
              "type": "boolean"
            }
          },
          "required": [
            "description",
            "prompt"
          ],
          "type": "object"
        }
        "#);
        insta::assert_snapshot!(offered("subagent_fork").description, @"Hands a task to a child agent that knows this conversation up to your last finished turn. It works on its own in the same directory, with no more permissions than you have now, and returns its final message. Several calls in one response run at the same time.");
        let own = offered("ask_own");
        assert_eq!(own.description, offered("subagent_fork").description);
        assert_eq!(own.input_schema, offered("subagent").input_schema);
        assert_eq!(own.input_schema, offered("subagent_fork").input_schema);
        for name in ["subagent", "subagent_fork", "ask_own"] {
            let tool = stage.app.realm().named::<dyn Tool>(name).unwrap();
            assert_eq!(tool.concurrency(), Concurrency::Shared, "siblings run side by side");
        }
        assert_eq!(stage.answer("spawn via ask_own { what? }").await, "[ok] You said: what?");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn a_tool_with_a_schema_says_that_it_returns_json() {
    within(async {
        let schema = OutputSchema::new(json!({"type": "object"})).unwrap();
        let config = Config { output_schema: Some(schema), ..Config::new("count", "spawn") };
        let stage = Stage::with_tools([config], |_| {}).await;
        insta::assert_snapshot!(stage.offered("count").unwrap().description, @"Hands a task to a child agent. It starts with an empty conversation, so put everything it needs to know into the prompt. It works on its own in the same directory, with no more permissions than you have now, and returns a result of a fixed form, as JSON. Several calls in one response run at the same time.");
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn without_jobs_there_is_no_background() {
    within(async {
        let without = |plugins: context::Plugins| plugins.without("tool-jobs").unwrap().without("jobs").unwrap();
        let stage = Stage::with(without, |_| {}).await.unwrap();
        insta::assert_snapshot!(seen(&stage.offered("subagent").unwrap()), @r#"
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
        let answer = stage.answer("spawn x in background { say done }").await;
        insta::assert_snapshot!(answer, @r#"[invalid-arguments] invalid arguments for `subagent`: unknown field `run_in_background`, expected `description` or `prompt` at line 1 column 58. Expected: {"description": string, "prompt": string}. Call it again with arguments that fit."#);
        assert!(stage.had_no_child());
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_what_would() {
    within(async {
        let stage = Stage::new().await;
        let answer = stage.answer(r#"call subagent {"description": "x", "prompt": "y", "cwd": "/"}"#).await;
        insta::assert_snapshot!(answer, @r#"[invalid-arguments] invalid arguments for `subagent`: unknown field `cwd`, expected one of `description`, `prompt`, `run_in_background` at line 1 column 41. Expected: {"description": string, "prompt": string, "run_in_background"?: boolean}. Call it again with arguments that fit."#);
        let answer = stage.answer(r#"call subagent {"description": "x"}"#).await;
        insta::assert_snapshot!(answer, @r#"[invalid-arguments] invalid arguments for `subagent`: missing field `prompt` at line 1 column 20. Expected: {"description": string, "prompt": string, "run_in_background"?: boolean}. Call it again with arguments that fit."#);
        assert!(stage.had_no_child());
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

// D-28
#[tokio::test]
async fn a_forked_child_knows_the_conversation() {
    within(async {
        let stage = Stage::new().await;
        stage.tell("write a.txt hello; say I wrote it").await;
        assert_eq!(stage.answer("fork \"look back\" { read a.txt; say I know }").await, "[ok] I know");
        let [child] = stage.children()[..] else { panic!("one child") };
        let log = stage.log(child);
        assert!(log.header().seed_length() > 0);
        let said: Vec<String> = log.messages().unwrap().iter().map(|message| message.text()).collect();
        assert!(said.iter().any(|text| text == "I wrote it"), "{said:?}");
        stage.app.close().await.unwrap();
    })
    .await;
}
