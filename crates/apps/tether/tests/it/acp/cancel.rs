//! Cancels, at any time.

use std::fs;

use serde_json::json;

use super::client::Client;
use super::show::said;
use crate::commands::confines;
use crate::run::world::World;

/// Whether a process with this in its arguments is left.
pub(super) fn runs(part: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).replace('\0', " ").contains(part))
}

#[test]
fn while_the_model_speaks() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "say \"I wait\" & hang");
    let seen = client.update(&session, "agent_message_chunk");
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    let all = [&[seen][..], &client.updates(&session)].concat();
    assert_eq!(said(&all), "I wait", "once, although the log has it too");
    assert_eq!(world.logs()[&session].last_end(), "aborted");
    // It goes on.
    let prompt = client.prompt(&session, "say on");
    assert_eq!(client.stopped(prompt), "end_turn");
    client.leave();
}

#[test]
fn while_a_command_runs() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let marker = format!("sleep 6{}", client.pid());
    let prompt = client.prompt(&session, &format!("bash 'setsid {marker} & echo up; {marker}'"));
    client.update_that(&session, |update| update["content"].to_string().contains("up"));
    assert!(runs(&marker));
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    let updates = client.updates(&session);
    let last = updates.iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "failed", "{last}");
    assert!(!runs(&marker), "the command is gone");
    client.leave();
}

#[test]
fn while_a_child_works() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "spawn A { say \"I wait\" & hang }");
    client.update_that(&session, |update| update["content"].to_string().contains("I wait"));
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    let logs = world.logs();
    assert!(logs.len() == 2 && logs.values().all(|log| log.last_end() == "aborted"));
    client.leave();
}

#[test]
fn the_request_itself() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "say \"I wait\" & hang");
    client.update(&session, "agent_message_chunk");
    client.notify("$/cancel_request", json!({"requestId": prompt}));
    assert_eq!(client.stopped(prompt), "cancelled");
    assert_eq!(world.logs()[&session].last_end(), "aborted");
    client.leave();
}

#[test]
fn of_nothing() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    client.cancel(&session);
    client.cancel("nobody");
    client.notify("session/cancel", json!({"sessionId": 3}));
    client.notify("$/cancel_request", json!({"requestId": 999}));
    client.notify("$/cancel_request", json!({"requestId": null}));
    client.notify("$/cancel_request", json!({}));
    client.notify("$/nobody/knows", json!({}));
    let prompt = client.prompt(&session, "say on");
    assert_eq!(client.stopped(prompt), "end_turn", "an early cancel does not stop what comes later");
    client.leave();
}

#[test]
fn right_behind_the_prompt() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    for _ in 0..10 {
        let prompt = client.prompt(&session, "hang");
        client.cancel(&session);
        assert_eq!(client.stopped(prompt), "cancelled");
    }
    client.leave();
}

#[test]
fn one_prompt_at_a_time() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let first = client.prompt(&session, "say \"I wait\" & hang");
    let second = client.prompt(&session, "say \"I am in a hurry\"");
    let (code, message) = client.answer(second).unwrap_err();
    assert_eq!(code, -32600, "{message}");
    client.cancel(&session);
    assert_eq!(client.stopped(first), "cancelled");
    assert!(!world.logs()[&session].text().contains("hurry"), "it was never taken");
    client.leave();
}

#[test]
fn of_one_session_does_not_reach_another() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let (one, two) = (client.new_session(&world), client.new_session(&world));
    let (slow, other) = (client.prompt(&one, "say \"I wait\" & hang"), client.prompt(&two, "say \"I too\" & hang"));
    client.update(&one, "agent_message_chunk");
    client.update(&two, "agent_message_chunk");
    client.cancel(&one);
    assert_eq!(client.stopped(slow), "cancelled");
    for _ in 0..3 {
        let prompt = client.prompt(&one, "say quick; say done");
        assert_eq!(client.stopped(prompt), "end_turn", "the other does not hold it up");
    }
    client.cancel(&two);
    assert_eq!(client.stopped(other), "cancelled");
    client.leave();
}
