//! How a connection ends.

use rustix::process::Signal;

use super::cancel::runs;
use super::client::Client;
use crate::commands::confines;
use crate::run::world::World;

/// A session with a child that runs a command, and what the command is.
fn busy(client: &mut Client, world: &World) -> (String, String) {
    let session = client.new_session(world);
    let marker = format!("sleep 7{}", client.pid());
    client.prompt(&session, &format!("spawn A {{ bash 'setsid {marker} & {marker}' }}"));
    client.update_that(&session, |update| update["content"].to_string().contains("A: bash"));
    (session, marker)
}

#[track_caller]
fn check_closed(world: &World, session: &str, marker: &str) {
    assert!(!runs(marker), "nothing of it is left");
    let logs = world.logs();
    assert_eq!(logs.len(), 2);
    assert!(logs.values().all(|log| log.last_end() == "aborted"));
    assert!(world.kept().iter().all(|name| name.ends_with(".jsonl")), "{:?}", world.kept());
    let resumed = world.tether(&["run", "--resume", session, "say on"]).ended(0);
    assert_eq!(resumed.stdout, "on\n");
}

#[test]
fn with_the_input_in_the_middle_of_a_turn() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let mut client = Client::start(&world, &[]);
    let (session, marker) = busy(&mut client, &world);
    client.leave();
    check_closed(&world, &session, &marker);
}

#[test]
fn with_a_signal_in_the_middle_of_a_turn() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let world = World::beside_tmp();
        if !confines(&world) {
            return;
        }
        let mut client = Client::start(&world, &[]);
        let (session, marker) = busy(&mut client, &world);
        client.signal(signal);
        let (status, _) = client.finish();
        assert_eq!(status, 130);
        check_closed(&world, &session, &marker);
    }
}

#[test]
fn with_a_signal_while_nothing_happens() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    client.new_session(&world);
    client.signal(Signal::TERM);
    assert_eq!(client.finish().0, 130);
}

#[test]
fn with_an_output_that_is_gone() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let mut client = Client::start(&world, &[]);
    let (session, marker) = busy(&mut client, &world);
    let status = client.stop_listening();
    assert!(matches!(status, Some(0 | 1)), "{status:?}");
    check_closed(&world, &session, &marker);
}

#[test]
fn in_the_middle_of_a_frame() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    client.new_session(&world);
    client.raw("{\"jsonrpc\":\"2.0\",\"id\":9,\"meth");
    client.leave();
}

#[test]
fn right_behind_a_prompt() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    client.prompt(&session, "hang");
    client.leave();
    let log = &world.logs()[&session];
    assert!(log.all("turn/start").len() == log.all("turn/end").len(), "{}", log.text());
}
