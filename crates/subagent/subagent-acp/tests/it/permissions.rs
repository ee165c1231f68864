//! A child's questions: answered by the configuration, by kind, and told where they were denied.

use sandbox::{Mode, Operation};
use serde_json::{Value, json};
use subagent::{Doing, RunResult};
use subagent_acp::{Config, Permission};

use crate::world::World;

async fn world(permission: Permission) -> World {
    World::with("", |config, _| Config { permission, ..config }).await
}

fn options(kinds: &[&str]) -> Value {
    kinds.iter().map(|kind| json!({ "optionId": format!("id-{kind}"), "name": kind, "kind": kind })).collect()
}

async fn asks(world: &World, params: Value) -> RunResult {
    world.does(&format!("ask {params}")).await
}

fn chosen(result: &RunResult) -> Value {
    serde_json::from_str(&result.text()).unwrap()
}

const ALL: [&str; 4] = ["allow_always", "allow_once", "reject_always", "reject_once"];

// D-63
#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_answers_one_time_where_there_is_the_choice() {
    let table = [
        (Permission::Reject, &ALL[..], Some("id-reject_once")),
        (Permission::Allow, &ALL[..], Some("id-allow_once")),
        (Permission::Allow, &ALL[..1], Some("id-allow_always")),
        (Permission::Reject, &ALL[..2], None),
    ];
    for (permission, kinds, id) in table {
        let world = world(permission).await;
        let call = json!({ "toolCallId": "c1", "title": "touch it", "kind": "execute" });
        let asked = json!({ "sessionId": "s1", "toolCall": call, "options": options(kinds) });
        let result = asks(&world, asked).await;
        let want = match id {
            Some(id) => json!({ "outcome": "selected", "optionId": id }),
            None => json!({ "outcome": "cancelled" }),
        };
        assert_eq!(chosen(&result), want, "{permission:?} of {kinds:?}");
        assert_eq!(result.denials.total, u64::from(permission == Permission::Reject));
        world.close().await;
    }
}

// D-32, D-63, D-66
#[tokio::test(flavor = "multi_thread")]
async fn what_was_denied_is_in_the_result_and_told_at_once() {
    let world = world(Permission::Reject).await;
    let table = [
        (json!({ "toolCallId": "c1", "title": "touch it", "kind": "execute" }), Operation::Execute, "touch it"),
        (
            json!({ "toolCallId": "c1", "kind": "edit", "title": "Edit x", "locations": [{ "path": "/w/x" }] }),
            Operation::Write,
            "/w/x",
        ),
        (json!({ "toolCallId": "c1" }), Operation::Execute, "the tool call c1"),
        (Value::Null, Operation::Execute, "a tool call"),
        (json!("odd"), Operation::Execute, "a tool call"),
    ];
    for (call, operation, target) in table {
        let asked = json!({ "sessionId": "s1", "toolCall": call, "options": options(&ALL) });
        let result = asks(&world, asked).await;
        let [denial] = &result.denials.list[..] else { panic!("{:?}", result.denials) };
        assert_eq!((denial.operation, &*denial.target), (operation, target));
        assert_eq!(denial.mode, Mode::WorkspaceWrite, "the deployment's, as nothing else was said");
        assert!(world.told().contains(&Doing::Denied(denial.clone())));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_none_allows_nothing() {
    let world = world(Permission::Allow).await;
    let nothing = json!({ "outcome": "cancelled" });
    for params in
        [json!({}), json!({ "options": [] }), json!({ "sessionId": "s1", "options": [{ "kind": "allow_once" }] })]
    {
        let result = asks(&world, params).await;
        assert_eq!((chosen(&result), result.denials.total), (nothing.clone(), 1));
    }
    for stranger in [json!({ "sessionId": "s2", "options": options(&ALL) }), json!({ "sessionId": 7 })] {
        assert_eq!(chosen(&asks(&world, stranger).await), -32602);
    }
    world.close().await;
}
