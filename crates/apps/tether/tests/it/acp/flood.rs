//! A client that does not read.

use std::fs;
use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::Client;
use super::show::said;
use crate::commands::confines;
use crate::run::process::DEADLINE;
use crate::run::world::World;

/// How much more memory there may be.
const MOST_GROWTH: u64 = 64 * 1024 * 1024;

#[test]
fn it_costs_no_memory_when_a_command_prints_a_lot() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "say hi");
    client.stopped(prompt);
    client.updates(&session);
    let before = client.memory("VmRSS:");
    let flood = "bash 'yes \"a line of some length, over and over again\" | head -c 200000000; touch done'";
    let prompt = client.prompt(&session, &format!("{flood}; say done"));
    let (done, begun) = (world.path("area/root/done"), Instant::now());
    while !done.exists() {
        assert!(begun.elapsed() < DEADLINE, "the command waits for the client");
        thread::yield_now();
    }
    let grown = client.memory("VmHWM:").saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{grown} bytes");
    assert_eq!(client.stopped(prompt), "end_turn");
    assert_eq!(said(&client.updates(&session)), "done");
    client.leave();
}

const WORDS: &str = "many words ";

#[test]
fn it_costs_no_memory_when_agents_say_a_lot() {
    let world = World::new();
    let calls = (0..200).map(|at| json!({"name": "list", "arguments": {"path": format!("{}{at}", "x".repeat(4000))}}));
    let calls = json!({"prompt": "talk", "step": 0, "calls": calls.collect::<Vec<_>>()});
    let words = json!({"prompt": "talk", "step": 1, "text": WORDS.repeat(20_000)});
    let script = world.write("replies.jsonl", format!("{calls}\n{words}\n"));
    let mut command = world.command(&["acp", "--model", "offline/file"]);
    command.env("TETHER_OFFLINE_SCRIPT", script);
    let mut client = Client::spawn(command);
    client.call("initialize", json!({"protocolVersion": 1})).unwrap();
    // Each is told a megabyte and says as much, and nobody reads any of it.
    let sessions: Vec<_> = (0..4).map(|_| client.new_session(&world)).collect();
    let before = client.memory("VmRSS:");
    let prompts: Vec<_> = sessions.iter().map(|session| client.prompt(session, "talk")).collect();
    let begun = Instant::now();
    let ended = |session| fs::read_to_string(world.log_path(session)).unwrap().contains("\"turn/end\"");
    while !sessions.iter().all(|session| ended(session)) {
        assert!(begun.elapsed() < DEADLINE, "an agent waits for the client");
        thread::yield_now();
    }
    let grown = client.memory("VmHWM:").saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{grown} bytes");
    for (session, prompt) in sessions.iter().zip(prompts) {
        assert_eq!(client.stopped(prompt), "end_turn");
        let updates = client.updates(session);
        assert_eq!(said(&updates), WORDS.repeat(20_000));
        assert_eq!(updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").count(), 200);
    }
    client.leave();
}

/// More than a client could be answered while it does not read.
const MANY: u64 = 12_000;

/// Asks this often, from a thread that tells how far it is and leaves the input open.
fn asking(
    client: &mut Client,
    times: u64,
    frame: impl Fn(u64) -> String + Send + 'static,
) -> (Receiver<u64>, JoinHandle<ChildStdin>) {
    let mut stdin = client.hand_over();
    let (sender, progress) = channel();
    let asking = thread::spawn(move || {
        for at in 0..times {
            stdin.write_all(frame(at).as_bytes()).unwrap();
            let _ = sender.send(at);
        }
        stdin
    });
    (progress, asking)
}

/// How far it is once it is not read from any more.
fn stuck(progress: &Receiver<u64>, mut asked: u64) -> u64 {
    loop {
        match progress.recv_timeout(Duration::from_secs(1)) {
            Ok(at) => asked = at,
            Err(RecvTimeoutError::Timeout) => return asked,
            Err(RecvTimeoutError::Disconnected) => panic!("all of it was read"),
        }
    }
}

#[test]
fn it_costs_no_memory_when_it_asks_a_lot() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let before = client.memory("VmRSS:");
    let (progress, asking) = asking(&mut client, MANY, |at| {
        let request = json!({"jsonrpc": "2.0", "id": at + FIRST, "method": "session/list", "params": {"cursor": "x"}});
        format!("{request}\n")
    });
    let asked = stuck(&progress, 0);
    // One that reads slowly is read from as slowly.
    for at in 0..1000 {
        assert_eq!(client.answer_to(&(at + FIRST).into()).unwrap_err().0, -32602);
    }
    let more = stuck(&progress, asked) - asked;

    assert!(more < 5_000, "{more} more for a thousand");
    let grown = client.memory("VmHWM:").saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{grown} bytes for {asked} requests");
    for at in 1000..MANY {
        assert_eq!(client.answer_to(&(at + FIRST).into()).unwrap_err().0, -32602);
    }
    drop(asking.join().unwrap());
    assert_eq!(client.finish().0, 0);
}

/// The id of the first request.
const FIRST: u64 = 1_000;

#[test]
fn it_costs_no_memory_when_it_sends_what_is_no_frame() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let before = client.memory("VmRSS:");
    let (progress, asking) = asking(&mut client, 120, |_| "x".repeat(1024 * 1024) + "\n");
    stuck(&progress, 0);
    let grown = client.memory("VmHWM:").saturating_sub(before);
    assert!(grown < MOST_GROWTH, "{grown} bytes");
    for _ in 0..120 {
        assert_eq!(client.nobodys_answer().unwrap_err().0, -32700);
    }
    drop(asking.join().unwrap());
    assert_eq!(client.finish().0, 0);
}
