use serde_json::json;

use super::event;
use crate::run::process::Ran;
use crate::run::world::World;

#[test]
fn text_of_any_kind_stays_one_line() {
    let world = World::new();
    let text = "a\nb\r\n\u{2028}\u{0}\u{1b}[2J\"\\ {\"type\":\"event\"} \u{1f600}";
    let replies = world.write("replies.jsonl", json!({"text": text}).to_string());
    let mut command = world.command(&["run", "--json", "--model", "offline/file", text.replace('\0', "").as_str()]);
    command.env("TETHER_OFFLINE_SCRIPT", replies);
    let ran = crate::run::process::Ran::of(command).ended(0);
    let lines = ran.json();
    assert_eq!(lines.last().unwrap()["output"], text);
    let events: Vec<&str> = ran.stdout.lines().filter_map(event).map(|(_, event)| event).collect();
    let log = world.logs().into_values().next().unwrap();
    assert_eq!(events, log.lines().collect::<Vec<_>>());
}

#[test]
fn nothing_is_printed_before_there_is_a_session() {
    let world = World::new();
    world.tether(&["run", "--json", "--model", "nobody/x", "say hi"]).refused(2);
    world.tether(&["run", "--json", " "]).refused(2);
}

#[test]
fn a_line_is_there_as_soon_as_it_happened() {
    let world = World::new();
    let mut running = world.start(&["run", "--json", "write --no-such-thing x; hang"]);
    // Or this would wait for the end, which does not come.
    running.line_with("\"turn/start\"");
    running.line_with("\"tool/result\"");
    running.kill();
}

#[test]
fn a_session_that_was_shown_has_a_result() {
    // That there is no room for temporary files is found once the session is open.
    let world = World::new();
    let mut command = world.command(&["run", "--json", "say hi"]);
    command.env("TMPDIR", "/nowhere");
    let ran = Ran::of(command).ended(1);
    ran.complaint("no temporary directory can be made in /nowhere");
    let lines = ran.json();
    let [session, result] = &lines[..] else { panic!("{}", ran.stdout) };
    assert_eq!((&session["type"], &result["type"]), (&"session".into(), &"result".into()));
    assert_eq!((&result["session"], &result["stopReason"]), (&session["id"], &"error".into()));
    assert!(world.kept().is_empty(), "{:?}", world.kept());
}
