//! A child that hands its result in: that it can, what it can, and that nothing takes the result away again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::{Agents, Inbox, OnTurnStop, StopVerdict, StoppingTurn};
use async_trait::async_trait;
use context::{Around, Ctx, Next};
use llm::{Chunk, Finish, ToolCall};
use serde_json::{Value, json};
use session::{RequestHeaderEvent, TurnEnd, TurnReason};
use session_store::SessionStore;
use subagent::{Descriptor, OutputSchema, RESULT_TOOL, Request, RunResult, StopReason};
use tools::{Call, OUTPUT_LIMIT, ToolExecution, ToolFilter, ToolOutput};

use crate::doubles::{Lines, Note, Tape};
use crate::world::*;

fn asked(prompt: &str, schema: Value) -> Request {
    Request { output_schema: Some(OutputSchema::new(schema).unwrap()), ..Request::new(prompt) }
}

fn any(prompt: &str) -> Request {
    asked(prompt, json!({ "type": "object" }))
}

async fn result_of(world: &World, request: Request) -> RunResult {
    let parent = world.parent().await;
    let run = world.subagents.start(&parent, "spawn", request).await.unwrap();
    let result = run.result().await.clone();
    run.dispose().await.unwrap();
    result
}

#[track_caller]
fn completed(result: &RunResult, structured: Value) {
    assert_eq!((result.reason, &result.structured, &result.message), (StopReason::Completed, &Some(structured), &None));
}

/// Steers and cancels a child that hands its result in, before or after, and lets no turn of a child's stop.
struct Meddler(Ctx, When);

#[derive(Clone, Copy, PartialEq)]
enum When {
    Before,
    After,
    Never,
}

#[async_trait]
impl Around<ToolExecution> for Meddler {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        let agent = self.0.get::<Agents>().unwrap().get(call.session.id()).unwrap();
        let meddle = |now| {
            if self.1 == now {
                agent.cancel("enough", Inbox::Keep);
            }
        };
        agent.steer("your tests are done").unwrap();
        meddle(When::Before);
        let output = next.run(call).await;
        meddle(When::After);
        output
    }
}

#[async_trait]
impl Around<OnTurnStop> for Meddler {
    async fn around(&self, stopping: StoppingTurn, _: Next<'_, OnTurnStop>) -> StopVerdict {
        assert!(stopping.outcome.turn > 1, "nobody is asked about the turn that was ended");
        StopVerdict::Stop
    }
}

// D-30
#[tokio::test]
async fn a_result_that_was_handed_in_counts_whatever_comes_then() {
    within(async {
        for when in [When::Never, When::After, When::Before] {
            let world = World::new().await;
            world.app.own(world.app.realm().around::<ToolExecution>(Meddler(Ctx::clone(&world.app), when))).unwrap();
            world.app.own(world.app.realm().around::<OnTurnStop>(Meddler(Ctx::clone(&world.app), when))).unwrap();
            let result = result_of(&world, any(r#"call submit_result {"n": 1}; fail protocol"#)).await;
            let log = world.log(world.news.children()[0]);
            let (ended, answer) = (&all::<TurnEnd>(&log)[0].reason, answers(&log).remove(0));
            let aborted = TurnReason::Aborted { cause: Some("enough".into()) };
            match when {
                When::Never => assert_eq!(*ended, TurnReason::Completed),
                When::After | When::Before => assert_eq!(*ended, aborted),
            }
            match when {
                When::Never | When::After => {
                    completed(&result, json!({ "n": 1 }));
                    assert_eq!(answer, "the result was handed in");
                }
                When::Before => {
                    assert_eq!((result.reason, result.structured), (StopReason::Aborted, None));
                    assert_eq!(answer, "the result was not taken: the turn was cancelled before it");
                }
            }
            world.app.close().await.unwrap();
        }
    })
    .await;
}

/// From the first call on, nothing becomes durable any more.
struct Breaks(Arc<AtomicBool>);

#[async_trait]
impl Around<ToolExecution> for Breaks {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        self.0.store(true, Ordering::SeqCst);
        next.run(call).await
    }
}

// D-30
#[tokio::test]
async fn a_result_counts_though_the_end_of_its_turn_is_not_durable() {
    within(async {
        let broken = Arc::new(AtomicBool::new(false));
        let (breaks, mended) = (broken.clone(), broken.clone());
        let fails = move |note: &Note| broken.load(Ordering::SeqCst) && matches!(note, Note::Flush { child: true, .. });
        let store: Arc<dyn SessionStore> = Arc::new(Tape::new(0, fails));
        let without = |plugins: context::Plugins| plugins.without("session-jsonl").unwrap();
        let world = World::with(Default::default(), without, |app| app.provide(store).unwrap()).await;
        world.app.own(world.app.realm().around::<ToolExecution>(Breaks(breaks))).unwrap();
        let parent = world.parent().await;
        let run = world.subagents.start(&parent, "spawn", any(r#"call submit_result {"n": 1}"#)).await.unwrap();
        completed(run.result().await, json!({ "n": 1 }));
        mended.store(false, Ordering::SeqCst);
        let unstructured = world.spawn(&parent, "list; say done").await;
        assert_eq!(unstructured.result().await.reason, StopReason::Error, "the log could not be written");
        drop((run, unstructured));
    })
    .await;
}

// D-29, D-30
#[tokio::test]
async fn no_filter_keeps_a_child_from_handing_its_result_in() {
    within(async {
        let world = World::new().await;
        world.app.register::<ToolFilter>("tools", Arc::new(ToolFilter::allowing(["list", "read"]))).unwrap();
        let own = Some(ToolFilter::allowing(["list"]));
        let request = Request { tool_filter: own.clone(), ..any(r#"list; call submit_result {"n": 1}"#) };
        completed(&result_of(&world, request).await, json!({ "n": 1 }));
        let log = world.log(world.news.children()[0]);
        let header = &log.latest::<RequestHeaderEvent>().unwrap().header;
        assert_eq!(header.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["list", RESULT_TOOL]);
        assert_eq!(log.latest::<Descriptor>().unwrap().tool_filter, own, "it is not a matter of filters");
        let parent = world.parent().await;
        let run = world.spawn(&parent, "say done").await;
        run.result().await;
        let log = world.log(run.child().unwrap());
        let header = &log.latest::<RequestHeaderEvent>().unwrap().header;
        assert!(!header.tools.iter().any(|tool| &*tool.name == RESULT_TOOL), "it is for who was given a schema");
        run.dispose().await.unwrap();
        world.app.close().await.unwrap();
    })
    .await;
}

fn hands_in(arguments: &str) -> Vec<Chunk> {
    let call = ToolCall { call_id: "1".into(), name: RESULT_TOOL.into(), arguments: arguments.into() };
    vec![Chunk::ToolCall(call), Chunk::End(Finish::Stop)]
}

// D-30
#[tokio::test]
async fn a_result_that_would_not_arrive_whole_is_refused_and_can_be_corrected() {
    within(async {
        let world = World::new().await;
        let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        let of_size = |size: usize| json!({ "a": "x".repeat(size - r#"{"a":""}"#.len()) });
        let largest = of_size(OUTPUT_LIMIT);
        let said = [
            format!(r#"{{"a":[0{}]}}"#, ",0".repeat(499_999)),
            nested(126),
            nested(64),
            of_size(OUTPUT_LIMIT + 1).to_string(),
            // What white space it has is not in the way.
            largest.to_string().replacen(':', &format!(":{}", " ".repeat(1000)), 1),
        ];
        world.model("large", Lines(said.iter().map(|said| hands_in(said)).collect()));
        let schema = json!({ "type": "object", "properties": { "a": { "anyOf": [{ "const": 1 }, true] } } });
        let request = Request { model: Some("large/any".parse().unwrap()), ..asked("go", schema) };
        completed(&result_of(&world, request).await, largest);
        let why = |why: &str| format!("the result does not fit: {why}. Correct it and call `{RESULT_TOOL}` again.");
        let log = world.log(world.news.children()[0]);
        let want = [
            why("it has more than 20000 values"),
            why("it is more than 64 values deep"),
            why("it is more than 64 values deep"),
            why("it has 49153 bytes as JSON, at most 49152 reach whoever asked for it"),
            "the result was handed in".to_owned(),
        ];
        assert_eq!(answers(&log), want);
        world.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn the_deepest_result_arrives() {
    within(async {
        let world = World::new().await;
        let deepest = format!("{}1{}", r#"{"a":"#.repeat(63), "}".repeat(63));
        world.model("deep", Lines(vec![hands_in(&deepest)]));
        let request = Request { model: Some("deep/any".parse().unwrap()), ..any("go") };
        completed(&result_of(&world, request).await, serde_json::from_str(&deepest).unwrap());
        world.app.close().await.unwrap();
    })
    .await;
}
