//! Asking the person at the client.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::Client;
use super::show::{normal, shown};
use crate::run::process::DEADLINE;
use crate::run::world::World;

const ASK: &str = "write ../x out with danger-full-access because 'the task says so'; say done";

/// Asks, and hands over once it is asked: the session, the prompt and the question.
fn asking(client: &mut Client, world: &World) -> (String, u64, Value) {
    let session = client.new_session(world);
    let prompt = client.prompt(&session, ASK);
    let question = client.asked("session/request_permission");
    assert_eq!(question["params"]["sessionId"], session);
    (session, prompt, question)
}

/// What was decided, and that the disk agrees.
#[track_caller]
fn check(world: &World, session: &str, outcome: &str, written: bool) {
    let log = &world.logs()[session];
    assert_eq!(log.all("approval/asked").len(), 1);
    let decided = log.all("approval/decided");
    assert_eq!((decided.len(), &decided[0]["outcome"]), (1, &outcome.into()), "{}", log.text());
    assert_eq!(world.path("area/x").exists(), written);
}

#[test]
fn a_question_names_what_is_asked_for() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let (session, prompt, question) = asking(&mut client, &world);
    let mut told = shown(&world, &[&session], &client.updates(&session));
    told += &format!("? {}\n", normal(&world, &[&session], &question["params"]));
    client.reply(&question, json!({"outcome": {"outcome": "selected", "optionId": "allow"}}));
    assert_eq!(client.stopped(prompt), "end_turn");
    told += &shown(&world, &[&session], &client.updates(&session));
    insta::assert_snapshot!(told);
    check(&world, &session, "allowed-once", true);
    client.leave();
}

#[test]
fn only_what_is_allowed_is_done() {
    for (answer, outcome) in [
        (json!({"outcome": {"outcome": "selected", "optionId": "reject"}}), "rejected"),
        (json!({"outcome": {"outcome": "selected", "optionId": "allow-always"}}), "unavailable"),
        (json!({"outcome": {"outcome": "cancelled"}}), "unavailable"),
        (json!({"outcome": "allow"}), "unavailable"),
        (json!({}), "unavailable"),
    ] {
        let world = World::new();
        let mut client = Client::start(&world, &[]);
        let (session, prompt, question) = asking(&mut client, &world);
        client.reply(&question, answer.clone());
        assert_eq!(client.stopped(prompt), "end_turn", "{answer}");
        check(&world, &session, outcome, false);
        client.leave();
    }
}

#[test]
fn a_cancel_settles_the_question_at_once() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let (session, prompt, question) = asking(&mut client, &world);
    let begun = Instant::now();
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    // Anything but a wait for an answer, even where tests crowd each other.
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    // The client is told that nobody waits, and what it answers then is dropped.
    assert_eq!(client.asked("$/cancel_request")["params"]["requestId"], question["id"]);
    client.reply(&question, json!({"outcome": {"outcome": "selected", "optionId": "allow"}}));
    let prompt = client.prompt(&session, "say on");
    assert_eq!(client.stopped(prompt), "end_turn");
    check(&world, &session, "cancelled", false);
    client.leave();
}

#[test]
fn a_client_that_leaves_is_nobodys_answer() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let (session, ..) = asking(&mut client, &world);
    client.leave();
    let log = &world.logs()[&session];
    let outcome = &log.all("approval/decided")[0]["outcome"];
    assert!(outcome == "cancelled" || outcome == "unavailable", "{outcome}");
    assert!(!world.path("area/x").exists());
}

#[test]
fn a_client_that_reads_late_knows_the_call_before_it_is_asked() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, &format!("{}; {ASK}", ["list"; 800].join(" & ")));
    let (path, begun) = (world.log_path(&session), Instant::now());
    let asks_next = r#""type":"step/start","data":{"turn":1,"step":2}"#;
    while !fs::read_to_string(&path).unwrap().contains(asks_next) {
        assert!(begun.elapsed() < DEADLINE, "it waits for the client");
        thread::yield_now();
    }
    let question = client.asked("session/request_permission");
    client.reply(&question, json!({"outcome": {"outcome": "selected", "optionId": "reject"}}));
    assert_eq!(client.stopped(prompt), "end_turn");
    check(&world, &session, "rejected", false);
    client.leave();
}

#[test]
fn nobody_is_asked_who_does_not_want_to_be() {
    let world = World::new();
    let mut client = Client::start(&world, &["--approval", "never"]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, ASK);
    assert_eq!(client.stopped(prompt), "end_turn");
    check(&world, &session, "rejected", false);
    client.leave();
}

#[test]
fn questions_of_two_sessions_are_answered_apart() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let (one, first, asked_first) = asking(&mut client, &world);
    let (two, second, asked_second) = asking(&mut client, &world);
    client.reply(&asked_second, json!({"outcome": {"outcome": "selected", "optionId": "reject"}}));
    assert_eq!(client.stopped(second), "end_turn");
    check(&world, &two, "rejected", false);
    client.reply(&asked_first, json!({"outcome": {"outcome": "selected", "optionId": "allow"}}));
    assert_eq!(client.stopped(first), "end_turn");
    check(&world, &one, "allowed-once", true);
    client.leave();
}
