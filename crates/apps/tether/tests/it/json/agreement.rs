use std::collections::BTreeMap;

use serde_json::Value;

use super::{Printed, check_agreement};
use crate::run::process::Ran;
use crate::run::world::World;

const WRITE: [&str; 4] = ["run", "--json", "--sandbox", "workspace-write"];

#[track_caller]
fn run(world: &World, prompt: &str, status: i32) -> Printed {
    let ran = world.tether(&[&WRITE[..], &[prompt]].concat()).ended(status);
    assert_eq!(ran.stderr.lines().filter(|line| !line.starts_with("tether: ")).count(), 0, "{}", ran.stderr);
    Printed::of(&ran)
}

/// What every assistant message of the printed events cost, together.
fn cost(printed: &Printed) -> (u64, u64) {
    let mut cost = (0, 0);
    for event in printed.events.values().flatten() {
        let event: Value = serde_json::from_str(event).unwrap();
        if event["type"] == "assistant/message" {
            let usage = &event["data"]["usage"];
            cost.0 += usage["inputTokens"].as_u64().unwrap_or(0);
            cost.1 += usage["outputTokens"].as_u64().unwrap_or(0);
        }
    }
    cost
}

/// Start and end of each child, once each and in that order, and the same sessions as those that have logs.
#[track_caller]
fn check_children(world: &World, printed: &Printed) {
    let mut open: Vec<&Value> = Vec::new();
    let mut ended = Vec::new();
    for line in &printed.children {
        let session = &line["session"];
        assert_eq!(line["provider"], "spawn");
        match line["phase"].as_str().unwrap() {
            "start" => {
                assert!(line.get("stopReason").is_none(), "{line}");
                assert!(!open.contains(&session) && !ended.contains(&session), "{line}");
                open.push(session);
            }
            "end" => {
                assert!(line["stopReason"].is_string(), "{line}");
                let at = open.iter().position(|open| *open == session).expect("it was started");
                ended.push(open.remove(at));
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let mut ended: Vec<(String, String)> = ended
        .into_iter()
        .map(|session| {
            let line = printed.children.iter().find(|line| line["session"] == *session).unwrap();
            (session.as_str().unwrap().to_owned(), line["parent"].as_str().unwrap().to_owned())
        })
        .collect();
    ended.sort();
    let logs = world.logs();
    let kept = logs.iter().filter_map(|(id, log)| {
        let parent = log.header()["parentSession"].as_str()?.to_owned();
        Some((id.clone(), parent))
    });
    assert_eq!(ended, kept.collect::<Vec<_>>());
}

#[test]
fn one_session() {
    let world = World::new();
    let printed = run(&world, "write a.txt hello; read a.txt; say done", 0);
    check_agreement(&world, &printed, &BTreeMap::new());
    assert_eq!(printed.session["cwd"], world.root().to_str().unwrap());
    assert_eq!(printed.result["stopReason"], "completed");
    assert_eq!(printed.result["output"], "done");
    assert_eq!(printed.result["denials"], serde_json::json!([]));
    assert_eq!(printed.events.len(), 1);
    assert!(printed.children.is_empty());
}

// D-32
#[test]
fn siblings_and_what_was_denied_to_one() {
    let world = World::new();
    let printed = run(&world, "spawn A { write a.txt hello } & spawn B { write ../x out } & spawn C { list . }", 0);
    check_agreement(&world, &printed, &BTreeMap::new());
    check_children(&world, &printed);
    let denials = printed.result["denials"].as_array().unwrap();
    let [denial] = &**denials else { panic!("{denials:?}") };
    let denied = denial["session"].as_str().unwrap();
    assert!(printed.events[denied].iter().any(|event| event.contains("sandbox-denied")), "it names the child");
    assert_eq!(denial["target"], world.path("area/x").to_str().unwrap());
    assert_eq!((&denial["operation"], &denial["mode"]), (&"write".into(), &"workspace-write".into()));
    let usage = &printed.result["usage"];
    let told = (usage["inputTokens"].as_u64().unwrap(), usage["outputTokens"].as_u64().unwrap());
    assert_eq!(told, cost(&printed), "the sum of all, children included");
}

// D-22 D-26
#[test]
fn three_deep() {
    let world = World::new();
    let printed = run(&world, "spawn A { spawn B { spawn C { write ../x out } } }; write ../y out; say done", 0);
    check_agreement(&world, &printed, &BTreeMap::new());
    check_children(&world, &printed);
    assert_eq!(printed.events.len(), 4);
    let denials = printed.result["denials"].as_array().unwrap();
    let sessions: Vec<&str> = denials.iter().map(|denial| denial["session"].as_str().unwrap()).collect();
    let deepest = world.logs().into_iter().find(|(_, log)| log.header()["delegationDepth"] == 3).unwrap().0;
    assert_eq!(sessions, [&*deepest, printed.id()], "each once, however deep");
    let usage = &printed.result["usage"];
    let told = (usage["inputTokens"].as_u64().unwrap(), usage["outputTokens"].as_u64().unwrap());
    assert_eq!(told, cost(&printed));
}

#[test]
fn a_crowd() {
    let world = World::new();
    let many: Vec<String> =
        (0..20).map(|n| format!("spawn {{ write f{n}.txt x; spawn {{ write ../f{n} x }} }}")).collect();
    let printed = run(&world, &many.join(" & "), 0);
    check_agreement(&world, &printed, &BTreeMap::new());
    check_children(&world, &printed);
    assert_eq!(printed.events.len(), 41);
    assert_eq!(printed.result["denials"].as_array().unwrap().len(), 20);
}

#[test]
fn a_session_that_goes_on_prints_what_is_new() {
    let world = World::new();
    let first = run(&world, "spawn A { say hi }", 0);
    let before: BTreeMap<String, usize> = first.events.iter().map(|(id, events)| (id.clone(), events.len())).collect();
    let args = ["run", "--json", "--resume", first.id(), "--sandbox", "read-only", "spawn B { write a.txt x }"];
    let ran = world.tether(&args).ended(0);
    let second = Printed::of(&ran);
    assert_eq!(second.id(), first.id());
    check_agreement(&world, &second, &before);
    assert_eq!(second.events.len(), 2, "the parent and its new child");
    assert!(second.events[first.id()][0].contains("sandbox/mode"), "the switch is the first new event");
    assert_eq!(second.children.len(), 2);
    let usage = &second.result["usage"];
    assert_eq!((usage["inputTokens"].as_u64().unwrap(), usage["outputTokens"].as_u64().unwrap()), cost(&second));
}

#[test]
fn what_closes_an_interrupted_turn_is_printed_too() {
    let world = World::new();
    let mut running = world.start(&["run", "--json", "spawn A { say hi }; hang"]);
    let id = running.line_with("\"session\"")["{\"type\":\"session\",\"id\":\"".len()..][..36].to_owned();
    running.line_with("\"phase\":\"end\"");
    running.kill();
    let kept = world.logs();
    let before: BTreeMap<String, usize> = kept.iter().map(|(id, log)| (id.clone(), log.lines().count())).collect();
    let printed = Printed::of(&world.tether(&["run", "--json", "--resume", &id, "say on"]).ended(0));
    check_agreement(&world, &printed, &before);
    assert!(printed.events[&id].iter().any(|event| event.contains("interrupted")), "{:?}", printed.events);
}

#[test]
fn ends_that_are_no_success() {
    for (prompt, status, reason) in [
        ("refuse", 1, "refusal"),
        ("say cut & max-tokens", 1, "max-tokens"),
        ("fail provider-failed", 1, "error"),
        ("spawn A { fail protocol }; say done", 0, "completed"),
    ] {
        let world = World::new();
        let printed = run(&world, prompt, status);
        check_agreement(&world, &printed, &BTreeMap::new());
        assert_eq!(printed.result["stopReason"], reason, "{prompt}");
    }
    let world = World::new();
    let ran = world.tether(&["run", "--json", "--timeout", "1", "spawn A { spawn B { hang } }"]).ended(3);
    let printed = Printed::of(&ran);
    check_agreement(&world, &printed, &BTreeMap::new());
    check_children(&world, &printed);
    assert_eq!(printed.result["stopReason"], "aborted");
    assert!(printed.children.iter().filter(|line| line["phase"] == "end").all(|end| end["stopReason"] == "aborted"));
}

#[test]
fn the_same_run_reads_the_same_for_people_and_for_programs() {
    let world = World::new();
    let prompt = "spawn A { write ../x out }";
    let for_people = world.tether(&[&["run"][..], &[prompt]].concat()).ended(0);
    let printed = Printed::of(&Ran::of(world.command(&["run", "--json", prompt])).ended(0));
    assert_eq!(for_people.stdout, format!("{}\n", printed.result["output"].as_str().unwrap()));
}
