use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::run::world::World;

/// What a model is answered that asks for this, and that nothing came of it.
#[track_caller]
fn check(name: &str, arguments: impl Into<Value>, code: &str, part: &str) {
    let world = World::new();
    let call = json!({"calls": [{"name": name, "arguments": arguments.into()}]});
    let replies = world.write("replies.jsonl", format!("{call}\n{}\n", json!({"text": "I see"})));
    let mut command = world.command(&["run", "--model", "offline/file", "--sandbox", "workspace-write", "do it"]);
    command.env("TETHER_OFFLINE_SCRIPT", replies);
    let ran = crate::run::process::Ran::of(command).ended(0);
    assert_eq!(ran.stdout, "I see\n", "the model can go on");
    let log = world.logs().into_values().next().unwrap();
    let results = log.all("tool/result");
    let [result] = &*results else { panic!("{}", log.text()) };
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(result["error"]["code"], code, "{text}");
    assert!(text.contains(part), "{text}");
    assert!(text.len() < 2_000, "{text}");
    let files: BTreeSet<PathBuf> = world.files("area").into_keys().collect();
    assert_eq!(files, BTreeSet::from([PathBuf::from("root")]));
}

#[test]
fn arguments_that_are_malformed() {
    let expected = "\"path\": string";
    for arguments in ["{bad", "", "null", "[]", "3", "{\"path\": \"a\"", "{}", "\u{0}"] {
        check("write", arguments, "invalid-arguments", expected);
    }
    for arguments in [
        json!({"path": 1, "content": "x"}),
        json!({"path": "a"}),
        json!({"path": "a", "content": "x", "contents": "y"}),
        json!({"path": "a", "content": "x", "sandbox_permissions": "everything", "justification": "x"}),
    ] {
        check("write", arguments, "invalid-arguments", "write");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    check("write", format!(r#"{{"path": "a", "content": {deep}}}"#), "invalid-arguments", "write");
}

#[test]
fn half_an_escalation_and_one_that_widens_nothing() {
    let half = json!({"path": "a", "content": "x", "sandbox_permissions": "danger-full-access"});
    check("write", half, "invalid-arguments", "needs a `justification`");
    let half = json!({"path": "a", "content": "x", "justification": "please"});
    check("write", half, "invalid-arguments", "sandbox_permissions");
    let same =
        json!({"path": "a", "content": "x", "sandbox_permissions": "workspace-write", "justification": "please"});
    check("write", same, "invalid-arguments", "`workspace-write` is not wider");
}

#[test]
fn a_tool_that_is_unknown() {
    check("rm", json!({"path": "/"}), "unknown-tool", "there is no tool named `rm`; there are: read, write");
    check("Write", json!({"path": "a", "content": "x"}), "unknown-tool", "no tool named `Write`");
    check(&"x".repeat(10_000), json!({}), "unknown-tool", "no tool named");
    check("", json!({}), "unknown-tool", "no tool named");
}

#[test]
fn paths_that_are_none() {
    for path in ["", "\u{0}", "a\u{0}b", ".", "..", "/", "../x"] {
        let code = if path == "../x" { "sandbox-denied" } else { "" };
        let world = World::new();
        let call = json!({"calls": [{"name": "write", "arguments": {"path": path, "content": "x"}}]});
        let replies = world.write("replies.jsonl", format!("{call}\n{}\n", json!({"text": "I see"})));
        let mut command = world.command(&["run", "--model", "offline/file", "--sandbox", "workspace-write", "do it"]);
        command.env("TETHER_OFFLINE_SCRIPT", replies);
        crate::run::process::Ran::of(command).ended(0);
        let log = world.logs().into_values().next().unwrap();
        let result = &log.all("tool/result")[0];
        assert_eq!(result["isError"], true, "{path:?}: {result}");
        assert!(code.is_empty() || result["error"]["code"] == code, "{path:?}: {result}");
        assert_eq!(world.files("area").len(), 1, "{path:?}");
    }
}
