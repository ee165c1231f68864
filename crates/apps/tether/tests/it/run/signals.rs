use std::fs;
use std::process::Stdio;
use std::time::Instant;

use rustix::io::ioctl_fionread;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use rustix::process::Signal;

use super::process::{DEADLINE, Running, signal_child, watch};
use super::world::World;
use crate::json::check_whole;

/// Starts a task that hangs in a child, and comes back once it does.
fn hanging(world: &World, more: &[&str]) -> (Running, String) {
    let mut running = world.start(&[&["run", "--json"], more, &["spawn A { say \"I wait\" & hang }"]].concat());
    let first: serde_json::Value = serde_json::from_str(&running.line_with("\"session\"")).unwrap();
    let id = first["id"].as_str().unwrap().to_owned();
    // A child may be told of before or after what it does first.
    let (mut told, mut works) = (false, false);
    while !(told && works) {
        let line = running.line().expect("a child");
        told |= line.contains("\"phase\":\"start\"");
        works |= line.contains("\"turn/start\"") && !line.contains(&id);
    }
    (running, id)
}

#[track_caller]
fn check_saved(world: &World, id: &str) {
    let logs = world.logs();
    assert!(logs.values().all(|log| log.last_end() == "aborted"));
    assert_eq!(logs[id].all("turn/end")[0]["reason"]["cause"], "interrupted by the user");
    assert!(world.kept().iter().all(|name| name.ends_with(".jsonl")), "{:?}", world.kept());
    let resumed = world.tether(&["run", "--resume", id, "say on"]).ended(0);
    assert_eq!(resumed.stdout, "on\n");
}

#[test]
fn the_first_ctrl_c_cancels_and_saves() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let world = World::new();
        let (running, id) = hanging(&world, &[]);
        running.signal(signal);
        let ran = running.finish().ended(130);
        ran.complaint("interrupted; the session is saved");
        check_whole(&world, &ran);
        let last = ran.json().pop().unwrap();
        assert_eq!((&last["type"], &last["stopReason"]), (&"result".into(), &"aborted".into()));
        check_saved(&world, &id);
    }
}

#[test]
fn ctrl_c_while_the_task_has_not_begun_is_not_lost() {
    // A message that a killed process left comes first, and the task only after it.
    for (signal, timeout, status) in [(Some(Signal::INT), "600", 130), (None, "1", 3)] {
        let world = World::new();
        let id = world.tether(&["run", "say hi"]).ended(0).id();
        let path = world.log_path(&id);
        let log = fs::read_to_string(&path).unwrap();
        let seq = log.lines().count() - 1;
        let accepted = format!(
            r#"{{"seq":{seq},"time":1,"type":"inbox/accepted","data":{{"id":{seq},"delivery":"followup","content":[{{"type":"text","text":"hang"}}],"source":{{"kind":"prompt"}}}}}}"#
        );
        fs::write(&path, format!("{log}{accepted}\n")).unwrap();
        let mut running = world.start(&["run", "--json", "--resume", &id, "--timeout", timeout, "say second"]);
        running.line_with("\"step/start\"");
        if let Some(signal) = signal {
            running.signal(signal);
        }
        running.finish().ended(status);
        let log = &world.logs()[&id];
        let ends: Vec<_> = log.all("turn/end").iter().map(|end| end["reason"]["kind"].clone()).collect();
        assert_eq!(ends, ["completed", "aborted"], "{}", log.text());
        // It was accepted, and waits for the next run.
        assert_eq!(world.tether(&["run", "--resume", &id, "say on"]).ended(0).stdout, "on\n");
        let log = &world.logs()[&id];
        let said: Vec<_> = log.all("assistant/message").iter().map(|said| said["message"]["content"].clone()).collect();
        assert_eq!(said.len(), 3, "{}", log.text());
        assert_eq!(said[1][0]["text"], "second");
    }
}

/// Waits until a process hears a signal, as the system tells it: by a mask in its status.
fn until_heard(running: &Running, mask: &str, signal: Signal) {
    let begun = Instant::now();
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
        let bits = status.lines().find_map(|line| line.strip_prefix(mask)).unwrap();
        if u64::from_str_radix(bits.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0 {
            return;
        }
        assert!(begun.elapsed() < DEADLINE, "it does not listen");
        std::thread::yield_now();
    }
}

#[test]
fn a_slow_start_obeys_the_first_signal() {
    // As many replies as a file may hold: reading them takes a while.
    let replies = "{\"prompt\": \"a\", \"text\": \"b\"}\n".repeat(500_000);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let world = World::new();
        let path = world.write("replies.jsonl", &replies);
        let mut command = world.command(&["run", "--json", "hang"]);
        command.env("TETHER_OFFLINE_SCRIPT", path);
        let running = Running::start(command);
        until_heard(&running, "SigCgt:", signal);
        running.signal(signal);
        let ran = running.finish().ended(130);
        assert_eq!((&*ran.stdout, &*ran.stderr), ("", "tether: interrupted before the task began\n"));
        assert!(!world.path("home").exists(), "nothing is left");
    }
}

#[test]
fn a_terminal_that_goes_away_does_not_end_what_ignores_that() {
    let world = World::new();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" run --json hang", env!("CARGO_BIN_EXE_tether")]);
    world.surround(&mut command);
    let mut running = Running::start(command);
    running.line_with("\"turn/start\"");
    until_heard(&running, "SigIgn:", Signal::HUP);
    running.signal(Signal::HUP);
    running.signal(Signal::TERM);
    let ran = running.finish().ended(130);
    assert_eq!(ran.json().pop().unwrap()["type"], "result", "it was the first that counted");
}

#[test]
fn ctrl_c_at_any_time_before_the_end() {
    // From the first line on, when the model has not been asked and the turn may not have begun.
    for lines in 1..12 {
        let world = World::new();
        let mut running = world.start(&["run", "--json", "--timeout", "600", "hang"]);
        for _ in 0..lines {
            // The last lines come only once it was told to end.
            if running.line().expect("more lines").contains("request/header") {
                break;
            }
        }
        running.signal(Signal::INT);
        let ran = running.finish().ended(130);
        check_whole(&world, &ran);
        // It came before the agent could be seen, and nothing is left.
        let Some(log) = world.logs().into_values().next() else { continue };
        match log.all("turn/start").len() {
            // It came before the turn: the task was accepted, and waits.
            0 => assert_eq!(log.all("inbox/accepted").len(), 1),
            _ => assert_eq!(log.last_end(), "aborted"),
        }
    }
}

#[test]
fn the_second_ctrl_c_quits_at_once() {
    let world = World::new();
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    fcntl_setpipe_size(&writer, 4096).unwrap();
    let long = format!("hang # {}", "long ".repeat(20_000));
    let mut command = world.command(&["run", "--json", &long]);
    // Nobody reads what it prints, and it waits for that: so it cannot end by itself.
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::null()).spawn().unwrap();
    drop(command);
    let watchdog = watch(&child);
    let begun = Instant::now();
    while ioctl_fionread(&reader).unwrap() == 0 {
        assert!(begun.elapsed() < DEADLINE, "it prints nothing");
        std::thread::yield_now();
    }
    signal_child(&child, Signal::INT);
    assert!(child.try_wait().unwrap().is_none(), "the first one waits for the end of the turn");
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < DEADLINE, "it does not quit");
        signal_child(&child, Signal::INT);
        std::thread::yield_now();
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(watchdog);
}
