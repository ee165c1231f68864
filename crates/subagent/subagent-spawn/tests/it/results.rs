//! How a child ends, and what it says at last.

use agent::{BeforeStep, Rejected, StepInput};
use async_trait::async_trait;
use context::{Around, Next};
use llm::{Chunk, Content, Finish, Role, ToolCall, Usage};
use llm_script::Fixed;
use session::{AssistantMessage, UserMessage};
use subagent::{Request, RunResult, StopReason};

use crate::doubles::{Gate, Lines};
use crate::world::*;

fn text(text: &str) -> Chunk {
    Chunk::Text(text.into())
}

fn list() -> Chunk {
    Chunk::ToolCall(ToolCall { call_id: "1".into(), name: "list".into(), arguments: "{}".into() })
}

/// What becomes of a child whose model says these lines.
async fn spoken(world: &World, parent: &agent::AgentRef, name: &str, lines: Vec<Vec<Chunk>>) -> RunResult {
    world.model(name, Lines(lines));
    let request = Request { model: Some(llm::Route::new(name, "any")), ..Request::new("go") };
    let run = world.subagents.start(parent, "spawn", request).await.unwrap();
    let result = run.result().await.clone();
    run.dispose().await.unwrap();
    result
}

// D-23
#[tokio::test]
async fn every_end_of_a_turn_is_a_result() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let table = [
            ("say done", StopReason::Completed, "done", None),
            ("list; say done", StopReason::Completed, "done", None),
            ("say half & max-tokens", StopReason::MaxTokens, "half", None),
            ("say no & refuse", StopReason::Refusal, "no", Some("the model declined to answer")),
            ("fail unauthorized", StopReason::Error, "", Some("the script says: fail unauthorized")),
            ("fail unreachable", StopReason::Error, "", Some("the script says: fail unreachable")),
            ("say half & fail truncated", StopReason::Error, "half", Some("the script says: fail truncated")),
            (
                "list & say looking; fail provider-failed",
                StopReason::Error,
                "looking",
                Some("the script says: fail provider-failed"),
            ),
        ];
        for (script, reason, said, message) in table {
            let run = world.spawn(&parent, script).await;
            let result = run.result().await;
            assert_eq!((result.reason, &*result.text()), (reason, said), "{script}");
            assert_eq!(result.message.as_deref(), message, "{script}");
            run.dispose().await.expect("however it ended, it goes quietly");
        }
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

// D-23
#[tokio::test]
async fn a_stream_that_is_cut_off_is_an_error_and_keeps_what_arrived() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let result = spoken(&world, &parent, "cut", vec![vec![text("ha"), text("lf"), list()]]).await;
        assert_eq!((result.reason, result.text()), (StopReason::Error, "half".to_owned()));
        assert_eq!(result.message.as_deref(), Some("the model's reply was cut off before its end"));
        let log = world.log(world.news.children()[0]);
        let last = all::<AssistantMessage>(&log)[0];
        assert!(last.interrupted && last.message.tool_calls().next().is_none(), "a call that never ran is not kept");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-23
#[tokio::test]
async fn a_cancel_before_completion_is_aborted_and_one_after_it_changes_nothing() {
    within(async {
        let world = World::new().await;
        let gate = Gate::in_app(&world.app);
        let parent = world.parent().await;
        world.model("mute", Fixed::hanging([text("so far")]));
        let models = [("hang", None), (r#"call gate {"name":"never"}; say done"#, None), ("go", Some("mute/any"))];
        for (at, (prompt, model)) in models.into_iter().enumerate() {
            let model = model.map(|model| model.parse().unwrap());
            let request = Request { model, ..Request::new(prompt) };
            let cancelled = request.cancelled.clone();
            let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
            if at == 1 {
                gate.arrived("never").await;
            }
            cancelled.cancel();
            assert_eq!(run.result().await.reason, StopReason::Aborted, "{prompt}");
            run.dispose().await.unwrap();
        }
        let request = Request::new("say done");
        let cancelled = request.cancelled.clone();
        let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
        run.result().await;
        cancelled.cancel();
        assert_eq!(run.result().await.reason, StopReason::Completed);
        run.dispose().await.unwrap();
        world.news.assert_paired();
        world.app.close().await.unwrap();
    })
    .await;
}

/// Lets no prompt of a child's through.
struct Bouncer;

#[async_trait]
impl Around<BeforeStep> for Bouncer {
    async fn around(&self, input: StepInput, next: Next<'_, BeforeStep>) -> Result<Vec<UserMessage>, Rejected> {
        match input.agent.session().header().lineage() {
            Some(_) => Err(Rejected("not on the list".into())),
            None => next.run(input).await,
        }
    }
}

// D-23
#[tokio::test]
async fn a_prompt_that_is_rejected_before_the_first_step_is_a_refusal() {
    within(async {
        let world = World::new().await;
        world.app.own(world.app.realm().around(Bouncer)).unwrap();
        let parent = world.parent().await;
        let run = world.spawn(&parent, "write a.txt x").await;
        let refused = RunResult { message: Some("not on the list".into()), ..RunResult::ended(StopReason::Refusal) };
        assert_eq!(*run.result().await, refused);
        run.dispose().await.unwrap();
        let log = world.log(run.child().unwrap());
        assert!(!tags(&log).iter().any(|tag| tag == "step/start"), "no step was taken");
        world.app.close().await.unwrap();
    })
    .await;
}

// D-24
#[tokio::test]
async fn the_output_is_the_last_message_that_says_something() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let (end, thought) = (|| Chunk::End(Finish::Stop), || Chunk::Thought("hm".into()));
        let table = [
            ("nothing", vec![vec![end()]], vec![]),
            ("thought", vec![vec![thought(), end()]], vec![]),
            ("tools", vec![vec![list(), end()], vec![end()]], vec![]),
            ("early", vec![vec![text("I look"), list(), end()], vec![thought(), end()]], vec![Content::text("I look")]),
            ("late", vec![vec![text("I look"), list(), end()], vec![text("seen"), end()]], vec![Content::text("seen")]),
            ("parts", vec![vec![text("a"), thought(), text("b"), end()]], vec![Content::text("a"), Content::text("b")]),
        ];
        for (name, lines, want) in table {
            let result = spoken(&world, &parent, name, lines).await;
            assert_eq!((result.reason, result.output), (StopReason::Completed, want), "{name}");
        }
        world.app.close().await.unwrap();
    })
    .await;
}

// D-24
#[tokio::test]
async fn the_output_is_never_the_parents() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        assert_eq!(said(&tell(&parent, "say my own words").await), "my own words");
        let result = spoken(&world, &parent, "mute", vec![vec![Chunk::End(Finish::Stop)]]).await;
        assert_eq!(result.output, []);
        let failed = world.spawn(&parent, "fail protocol").await;
        assert_eq!(failed.result().await.output, []);
        let log = world.log(world.news.children()[0]);
        let heard = log.messages().unwrap();
        assert!(!heard.iter().any(|message| message.role == Role::User && message.text().contains("my own words")));
        world.app.close().await.unwrap();
    })
    .await;
}

// D-23
#[tokio::test]
async fn the_cost_is_that_of_all_its_requests_and_not_of_its_children() {
    within(async {
        let world = World::new().await;
        let parent = world.parent().await;
        let cost =
            |input_tokens, output_tokens| Chunk::Usage(Usage { input_tokens, output_tokens, cached_input_tokens: 1 });
        let end = || Chunk::End(Finish::Stop);
        let lines = vec![vec![list(), cost(3, 5), cost(10, 20), end()], vec![text("done"), cost(100, 200), end()]];
        let result = spoken(&world, &parent, "dear", lines).await;
        assert_eq!(result.usage, Usage { input_tokens: 110, output_tokens: 220, cached_input_tokens: 2 });
        let alone = world.spawn(&parent, "list; say done").await.result().await.usage;
        let with_child =
            world.spawn(&parent, "spawn x { say a great many words }; say done").await.result().await.usage;
        assert!(alone.total() > 0 && with_child.output_tokens < 20, "{alone:?} {with_child:?}");
        world.app.close().await.unwrap();
    })
    .await;
}
