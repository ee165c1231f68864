//! What a client can set of a session.

use serde_json::{Value, json};

use super::client::Client;
use crate::run::process::Ran;
use crate::run::world::World;

fn set_mode(client: &mut Client, session: &str, mode: &str) -> super::client::Answer {
    client.call("session/set_mode", json!({"sessionId": session, "modeId": mode}))
}

fn set_model(client: &mut Client, session: &str, model: Value) -> super::client::Answer {
    client.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model}))
}

#[test]
fn a_session_tells_what_can_be_set() {
    let world = World::new();
    world.config("[permission.presets.careful]\nsandbox = \"read-only\"\napproval = \"never\"\n");
    let mut client = Client::start(&world, &[]);
    let mut opened = client.call("session/new", json!({"cwd": world.root(), "mcpServers": []})).unwrap();
    opened["sessionId"] = "<session 1>".into();
    insta::assert_snapshot!(format!("{opened:#}"));
    client.leave();
}

#[test]
fn presets_are_modes() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    for (mode, written) in [("workspace-write", true), ("danger-full-access", true), ("read-only", false)] {
        assert_eq!(set_mode(&mut client, &session, mode).unwrap(), json!({}));
        assert_eq!(client.update(&session, "current_mode_update")["currentModeId"], mode);
        client.update(&session, "config_option_update");
        // Another process would see it.
        let chosen = world.logs()[&session].all("permission/preset");
        assert_eq!(chosen.last().unwrap()["name"], mode);
        let prompt = client.prompt(&session, &format!("write {mode}.txt x; say done"));
        assert_eq!(client.stopped(prompt), "end_turn");
        assert_eq!(world.path(format!("area/root/{mode}.txt")).exists(), written, "{mode}");
        assert!(client.updates(&session).iter().all(|update| update["sessionUpdate"] != "current_mode_update"));
    }
    for mode in ["", "custom", "nobody"] {
        let (code, message) = set_mode(&mut client, &session, mode).unwrap_err();
        assert_eq!(code, -32602, "{message}");
        assert!(message.contains("workspace-write"), "it names those that there are: {message}");
    }
    client.leave();
}

#[test]
fn a_prompt_is_held_to_the_mode_that_was_set_before_it() {
    let world = World::new();
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    for at in 0..20 {
        let mode =
            |client: &mut Client, mode| client.send("session/set_mode", json!({"sessionId": session, "modeId": mode}));
        // Nobody waits for the answer.
        mode(&mut client, "read-only");
        let prompt = client.prompt(&session, &format!("write {at}.txt x; say done"));
        assert_eq!(client.stopped(prompt), "end_turn");
        let wider = mode(&mut client, "workspace-write");
        client.answer(wider).unwrap();
    }
    assert_eq!(world.files("area/root"), [].into(), "not once");
    client.leave();
}

#[test]
fn settings_that_no_preset_has_are_shown() {
    let world = World::new();
    let mut client = Client::start(&world, &["--sandbox", "read-only", "--approval", "never"]);
    let opened = client.call("session/new", json!({"cwd": world.root(), "mcpServers": []})).unwrap();
    let ids: Vec<_> = opened["modes"]["availableModes"].as_array().unwrap().iter().map(|mode| &mode["id"]).collect();
    assert_eq!(opened["modes"]["currentModeId"], "custom");
    assert_eq!(ids.iter().filter(|id| **id == "custom").count(), 1);
    client.leave();
}

#[test]
fn a_mode_can_be_set_while_a_turn_runs_and_holds_from_then_on() {
    let world = World::new();
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "write a.txt x; wait 300; write b.txt x; say done");
    client.update_that(&session, |update| update["status"] == "completed");
    set_mode(&mut client, &session, "read-only").unwrap();
    assert_eq!(client.stopped(prompt), "end_turn");
    assert!(world.path("area/root/a.txt").exists() && !world.path("area/root/b.txt").exists());
    client.leave();
}

#[test]
fn the_model_is_one_of_those_that_are_offered() {
    let world = World::new();
    let mut command = world.command(&["acp", "--model", "offline/script"]);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1");
    let mut client = Client::spawn(command);
    client.call("initialize", json!({"protocolVersion": 1})).unwrap();
    let opened = client.call("session/new", json!({"cwd": world.root(), "mcpServers": []})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let option = &opened["configOptions"][0];
    assert_eq!(option["currentValue"], "offline/script");
    let other = option["options"][1]["value"].clone();
    assert!(other.as_str().unwrap().starts_with("openai/"), "{option}");
    let now = set_model(&mut client, &session, other.clone()).unwrap();
    assert_eq!(now["configOptions"][0]["currentValue"], other);
    let now = set_model(&mut client, &session, "offline/script".into()).unwrap();
    assert_eq!(now["configOptions"][0]["currentValue"], "offline/script");
    for wrong in [json!("offline/nope"), json!("nobody/at-all"), json!("x"), json!(""), json!(3)] {
        let (code, message) = set_model(&mut client, &session, wrong.clone()).unwrap_err();
        assert_eq!(code, -32602, "{wrong}: {message}");
    }
    let other = json!({"sessionId": session, "configId": "colour", "value": "red"});
    assert_eq!(client.call("session/set_config_option", other).unwrap_err().0, -32602);
    let prompt = client.prompt(&session, "say on");
    assert_eq!(client.stopped(prompt), "end_turn");
    client.leave();
}

#[test]
fn what_keeps_every_session_from_beginning_ends_it_at_once() {
    let world = World::new();
    world.config("nonsense = 1\n");
    Ran::of(world.command(&["acp"])).refused(2);
    let world = World::new();
    let said = Ran::of(world.command(&["acp", "--preset", "nope"])).refused(2);
    assert!(said.contains("`nope`") && said.contains("workspace-write"), "{said}");
}

#[test]
fn what_keeps_a_session_from_beginning_is_told() {
    let world = World::new();
    for args in [["--model", "openai/gpt"], ["--model", "offline/nope"]] {
        let mut client = Client::start(&world, &args);
        let refused = client.call("session/new", json!({"cwd": world.root(), "mcpServers": []})).unwrap_err();
        assert!(refused.1.contains("key") || refused.1.contains("nope"), "{refused:?}");
        assert_eq!(world.kept(), Vec::<String>::new(), "{args:?}");
        client.leave();
    }
}
