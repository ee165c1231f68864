//! Results by a schema.

use std::sync::Arc;

use async_trait::async_trait;
use llm::{Content, ToolSchema};
use serde_json::json;
use session::{RequestHeaderEvent, StepStart, ToolReturned, TurnEnd, TurnReason, TurnStart};
use subagent::{OutputSchema, RESULT_TOOL};
use tool_subagent::Config;
use tools::{Call, Tool, ToolFilter, ToolOutput};

use crate::doubles::Gate;
use crate::stage::{Stage, within};

fn of_one(name: &str, kind: &str) -> OutputSchema {
    let properties = json!({ name: { "type": kind } });
    let schema =
        json!({ "type": "object", "properties": properties, "required": [name], "additionalProperties": false });
    OutputSchema::new(schema).unwrap()
}

/// A tool whose children hand in `{"n": 3}`.
fn count() -> Config {
    Config { output_schema: Some(of_one("n", "integer")), ..Config::new("count", "spawn") }
}

async fn stage() -> Stage {
    Stage::with_tools([count()], |_| {}).await
}

// D-30
#[tokio::test]
async fn the_first_valid_result_ends_the_turn_and_is_the_answer() {
    within(async {
        let stage = stage().await;
        let script = "spawn via count { call submit_result {\"n\": 3}; write never.txt x; say never }";
        assert_eq!(stage.answer(script).await, r#"[ok] {"n":3}"#);
        assert_eq!(stage.file("never.txt"), None);
        let log = stage.log(stage.children()[0]);
        assert_eq!(log.events().iter().filter(|event| event.get::<StepStart>().is_some()).count(), 1);
        assert_eq!(log.latest::<TurnEnd>().unwrap().reason, TurnReason::Completed);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn a_result_that_does_not_fit_is_corrected_in_the_same_turn() {
    within(async {
        let stage = stage().await;
        let script = concat!(
            "spawn via count { call submit_result {\"n\": \"three\"}; call submit_result {\"m\": 3}; ",
            "call submit_result {\"n\": ; call submit_result {\"n\": 4} }"
        );
        assert_eq!(stage.answer(script).await, r#"[ok] {"n":4}"#);
        let child = stage.children()[0];
        insta::assert_snapshot!(stage.answers_in(child).join("\n"), @r#"
        [invalid-arguments] the result does not fit: /n: "three" is not of type "integer". Correct it and call `submit_result` again.
        [invalid-arguments] the result does not fit: the result: Additional properties are not allowed ('m' was unexpected). Correct it and call `submit_result` again.
        [invalid-arguments] the result does not fit: EOF while parsing a value at line 1 column 5. Correct it and call `submit_result` again.
        [ok] the result was handed in
        "#);
        let turns = stage.log(child).events().iter().filter(|event| event.get::<TurnStart>().is_some()).count();
        assert_eq!(turns, 1);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn what_comes_after_the_result_in_the_same_response_is_denied() {
    within(async {
        let stage = stage().await;
        let script = concat!(
            "spawn via count { write before.txt x & call submit_result {\"n\": 1} & write after.txt x & ",
            "call submit_result {\"n\": 2} & spawn { write deep.txt x } }"
        );
        assert_eq!(stage.answer(script).await, r#"[ok] {"n":1}"#);
        let on_disk = ["before.txt", "after.txt", "deep.txt"].map(|name| stage.file(name).is_some());
        assert_eq!((on_disk, stage.children().len()), ([true, false, false], 1));
        insta::assert_snapshot!(stage.answers_in(stage.children()[0]).join("\n"), @r"
        [ok] created /ws/before.txt (1 bytes)
        [ok] the result was handed in
        [cancelled] `write` was not run: the result was handed in before it, and the task is over
        [cancelled] `submit_result` was not run: the result was handed in before it, and the task is over
        [cancelled] `subagent` was not run: the result was handed in before it, and the task is over
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn a_child_that_hands_nothing_in_has_failed() {
    within(async {
        let stage = stage().await;
        let mut all = String::new();
        for script in
            ["say I forgot", "call submit_result {\"n\": 0.5}; say I tried", "fail unauthorized", "max-tokens"]
        {
            all += &format!("{}\n", stage.answer(&format!("spawn via count {{ {script} }}")).await);
        }
        insta::assert_snapshot!(all, @r"
        [failed] the child failed: the child finished without handing its result in with `submit_result`. Its last message:
        I forgot
        [failed] the child failed: the child finished without handing its result in with `submit_result`. Its last message:
        I tried
        [failed] the child failed: the script says: fail unauthorized
        [failed] the child's reply was cut by its token limit
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn children_at_the_same_time_have_each_their_own_schema() {
    within(async {
        let name = Config { output_schema: Some(of_one("name", "string")), ..Config::new("name", "spawn") };
        let gate = Gate::new();
        let stage = Stage::with_tools([count(), name], |app| gate.put_into(app)).await;
        let result = |json: &str| format!("call submit_result {json}");
        let (number, text) = (result(r#"{"n": 3}"#), result(r#"{"name": "x"}"#));
        let script = format!(
            "spawn A via count {{ call gate; {text}; {number} }} & spawn B via name {{ call gate; {number}; {text} }} & \
             spawn C {{ {number} }}"
        );
        let receipt = stage.agent.followup(&*script).unwrap();
        gate.arrived(2).await;
        gate.open();
        receipt.outcome().await;
        let answers: Vec<String> = stage.results().iter().map(|result| stage.shown(result)).collect();
        let plain = "[ok] call submit_result: error: no tool named `submit_result` is offered; there are: ";
        assert_eq!(answers[..2], [r#"[ok] {"n":3}"#, r#"[ok] {"name":"x"}"#]);
        assert!(answers[2].starts_with(plain), "{}", answers[2]);
        let mut own: Vec<String> = Vec::new();
        for child in stage.children() {
            let header = stage.header(child);
            let shown = header.tools.iter().find(|tool| &*tool.name == RESULT_TOOL);
            own.push(shown.map_or("none".into(), |tool| tool.input_schema["required"][0].to_string()));
        }
        own.sort();
        assert_eq!(own, ["\"n\"", "\"name\"", "none"]);
        assert!(!stage.shown_to(stage.agent.id()).contains(&RESULT_TOOL.to_owned()));
        stage.app.close().await.unwrap();
    })
    .await;
}

/// A tool of the parent's own that answers as the result tool does.
struct Forged(ToolSchema);

#[async_trait]
impl Tool for Forged {
    fn schema(&self) -> &ToolSchema {
        &self.0
    }

    async fn call(&self, _: &Call) -> ToolOutput {
        ToolOutput::text("the result was handed in").with_meta(&json!({ "structured": { "n": 99 } }))
    }
}

// D-30
#[tokio::test]
async fn a_result_in_the_seed_is_not_the_childs_own() {
    within(async {
        let config = Config { provider: "fork".into(), ..count() };
        let stage = Stage::with_tools([config], |_| {}).await;
        let input_schema = Arc::new(json!({ "type": "object" }));
        let forged = Forged(ToolSchema { name: RESULT_TOOL.into(), description: "".into(), input_schema });
        stage.agent.ctx().register::<dyn Tool>(RESULT_TOOL, Arc::new(forged)).unwrap();
        assert_eq!(stage.answer("call submit_result {}").await, "[ok] the result was handed in");
        let answer = stage.answer("fork via count { say it is in there somewhere }").await;
        insta::assert_snapshot!(answer, @r"
        [failed] the child failed: the child finished without handing its result in with `submit_result`. Its last message:
        it is in there somewhere
        ");
        let log = stage.log(stage.children()[0]);
        let seeded = log.events().iter().any(|event| event.get::<ToolReturned>().is_some_and(|it| it.meta.is_some()));
        assert!(seeded, "it is in the seed");
        assert_eq!(stage.answer("fork via count { call submit_result {\"n\": 1} }").await, r#"[ok] {"n":1}"#);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-29, D-30
#[tokio::test]
async fn a_filter_leaves_a_child_the_tool_for_its_result() {
    within(async {
        let config = Config { tools: Some(ToolFilter::allowing(["read"])), ..count() };
        let stage = Stage::with_tools([config], |_| {}).await;
        assert_eq!(stage.answer("spawn via count { call submit_result {\"n\": 1} }").await, r#"[ok] {"n":1}"#);
        assert_eq!(stage.shown_to(stage.children()[0]), ["read", RESULT_TOOL]);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30, D-32
#[tokio::test]
async fn a_result_stands_alone_and_denials_beside_it() {
    within(async {
        let stage = stage().await;
        stage.tell("spawn via count { write ../out.txt x; call submit_result {\"n\": 1} }").await;
        let result = stage.results().pop().unwrap();
        let parts: Vec<&str> = result.content.iter().filter_map(Content::as_text).collect();
        assert_eq!((parts[0], parts.len()), (r#"{"n":1}"#, 2));
        insta::assert_snapshot!(stage.plain(parts[1]), @r"
        Denied to the child, by the scope that you handed down:
        - write /out.txt (mode workspace-write)
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30
#[tokio::test]
async fn a_schema_is_for_the_child_that_it_was_given_to_alone() {
    within(async {
        let stage = stage().await;
        let script = "spawn via count { spawn inner { say I hand nothing in }; call submit_result {\"n\": 1} }";
        assert_eq!(stage.answer(script).await, r#"[ok] {"n":1}"#);
        let [outer, inner] = stage.children()[..] else { panic!("two children") };
        assert_eq!(stage.answers_in(outer)[0], "[ok] I hand nothing in");
        assert!(!stage.shown_to(inner).contains(&RESULT_TOOL.to_owned()));
        let headers =
            |id| stage.log(id).events().iter().filter(|event| event.get::<RequestHeaderEvent>().is_some()).count();
        assert_eq!((headers(outer), headers(inner)), (1, 1), "nobody's tools change on the way");
        stage.app.close().await.unwrap();
    })
    .await;
}
