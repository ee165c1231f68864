//! Turns as a client sees them.

use serde_json::json;

use super::client::Client;
use super::show::{normal, said, shown, text};
use crate::commands::confines;
use crate::run::world::World;

/// Works on a prompt: how it ended, and what was shown.
#[track_caller]
fn turn(client: &mut Client, world: &World, session: &str, text: &str) -> String {
    let prompt = client.prompt(session, text);
    let stopped = client.stopped(prompt);
    let updates = client.updates(session);
    format!("{}= {stopped}\n", shown(world, &[session], &updates))
}

#[test]
fn the_connection_says_what_it_can_do() {
    let world = World::new();
    let mut client = Client::spawn(world.command(&["acp"]));
    let asked = json!({"protocolVersion": 99, "clientCapabilities": {"fs": {"readTextFile": true}}});
    let mut said = client.call("initialize", asked).unwrap();
    assert_eq!(said["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
    said["agentInfo"]["version"] = "<version>".into();
    insta::assert_snapshot!(format!("{said:#}"));
    client.leave();
}

#[test]
fn what_is_denied_is_shown_as_failed() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    insta::assert_snapshot!(turn(&mut client, &world, &session, "write a.txt hello; say done"));
    assert!(!world.path("area/root/a.txt").exists());
    client.leave();
}

#[test]
fn changes_of_files_are_shown_as_such() {
    let world = World::new();
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    let task = "write a.txt \"one\\ntwo\\n\"; edit a.txt two three; read a.txt; say done";
    insta::assert_snapshot!(turn(&mut client, &world, &session, task));
    assert_eq!(std::fs::read_to_string(world.path("area/root/a.txt")).unwrap(), "one\nthree\n");
    client.leave();
}

#[test]
fn what_a_command_prints_is_shown_while_it_runs() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    // It goes on once it was seen.
    let prompt = client.prompt(&session, "bash 'echo first; until test -e seen; do :; done; echo second'; say done");
    client.update_that(&session, |update| {
        update["sessionUpdate"] == "tool_call_update" && update["content"].to_string().contains("first")
    });
    world.write("area/root/seen", "");
    assert_eq!(client.stopped(prompt), "end_turn");
    let updates = client.updates(&session);
    let last = updates.iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "completed");
    assert!(last["content"].to_string().contains("first\\nsecond"), "{last}");
    client.leave();
}

#[test]
fn what_children_do_is_shown_in_the_call_that_asked_for_them() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let task =
        "spawn A { say \"I look\" & list; spawn B { write b.txt x; say \"B is done\" }; say \"A is done\"; hang }";
    let prompt = client.prompt(&session, &format!("{task}; say done"));
    // It hangs, so what is seen here was shown while it ran.
    let seen = client.update_that(&session, |update| {
        update["sessionUpdate"] == "tool_call_update" && update["content"].to_string().contains("A is done")
    });
    assert!(seen["status"].is_null(), "{seen}");
    insta::assert_snapshot!(normal(&world, &[&session], &text(&seen["content"][0])));
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    client.leave();
}

#[test]
fn what_children_did_stays_above_their_answer() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let task = "spawn A { write a.txt x; say \"A is done\" }; say done";
    insta::assert_snapshot!(turn(&mut client, &world, &session, task));
    assert_eq!(world.logs().len(), 2);
    client.leave();
}

#[test]
fn how_a_turn_ends_is_told() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    for (task, reason) in
        [("say hi", "end_turn"), ("say hi & refuse", "refusal"), ("say hi & max-tokens", "max_tokens")]
    {
        let prompt = client.prompt(&session, task);
        assert_eq!(client.stopped(prompt), reason, "{task}");
        assert_eq!(said(&client.updates(&session)), "hi");
    }
    let prompt = client.prompt(&session, "fail unauthorized");
    let (code, message) = client.answer(prompt).unwrap_err();
    assert_eq!(code, -32603, "{message}");
    assert!(message.contains("unauthorized"), "{message}");
    client.leave();
}

#[test]
fn a_prompt_has_parts() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = json!([
        {"type": "text", "text": "say hi"},
        {"type": "resource_link", "name": "a.txt", "uri": "file:///a.txt"},
        {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "B"}},
    ]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).unwrap();
    let log = &world.logs()[&session];
    let message = log.all("user/message").pop().unwrap();
    insta::assert_snapshot!(format!("{:#}", message["content"]));
    for (part, why) in [
        (json!({"type": "text", "text": " \n"}), "empty"),
        (json!({"type": "image", "data": "AAAA", "mimeType": "image/png"}), "images"),
        (json!({"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}}), "must be text"),
        (json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}), "a prompt is made of"),
    ] {
        let refused = client.call("session/prompt", json!({"sessionId": session, "prompt": [part]})).unwrap_err();
        assert!(refused.0 == -32602 && refused.1.contains(why), "{refused:?}");
    }
    let none = client.call("session/prompt", json!({"sessionId": session, "prompt": []})).unwrap_err();
    assert_eq!(none.0, -32602);
    client.leave();
}
