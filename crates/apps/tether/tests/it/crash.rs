//! `kill -9`, at any instant.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::json::event;
use crate::run::logs::Log;
use crate::run::world::World;

/// Children side by side and below each other, files, and a wait in the middle.
const TASK: &str = r#"
write a.txt one
spawn A { write b.txt two; wait 20; spawn C { write c.txt three; read c.txt }; say "A is done" } & spawn B { write ../x out; wait 40; write d.txt four }
read a.txt; wait 20
spawn D { list .; write e.txt five } & write f.txt six
say done
"#;

const KILLS: usize = 20;

/// How far the log of each session must have come, by what was printed: whoever asks a model, ends a turn for others to
/// see or shows a child has flushed before.
fn due(lines: &[String]) -> BTreeMap<String, u64> {
    let mut due = BTreeMap::new();
    for line in lines {
        if let Some((session, event)) = event(line) {
            let event: Value = serde_json::from_str(event).unwrap();
            if event["type"] == "assistant/message" {
                due.insert(session.to_owned(), event["seq"].as_u64().unwrap());
            }
        } else if line.contains(r#""type":"child","phase":"start""#) {
            let line: Value = serde_json::from_str(line).unwrap();
            // Its stamps, its pin, its descriptor and its task.
            due.entry(line["session"].as_str().unwrap().to_owned()).or_insert(4);
        }
    }
    due
}

/// Kills a run once it has printed so many lines, and holds what is left to what was promised.
fn kill_after(lines: usize) {
    let world = World::new();
    let mut running = world.start(&["run", "--json", "--sandbox", "workspace-write", TASK]);
    for _ in 0..lines {
        if running.line().is_none() {
            break;
        }
    }
    let printed = running.kill();
    let logs: Vec<String> =
        world.kept().iter().filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    let Some(first) = printed.first() else {
        return assert!(logs.is_empty(), "nothing was told, and {logs:?} is kept");
    };
    let id = serde_json::from_str::<Value>(first).unwrap()["id"].as_str().unwrap().to_owned();

    for (session, due) in due(&printed) {
        assert!(logs.contains(&session), "{session} was announced, and is not kept");
        let kept = fs::read_to_string(world.log_path(&session)).unwrap();
        let whole = kept.rfind('\n').map_or("", |end| &kept[..=end]);
        let kept: Vec<&str> = whole.lines().skip(1).collect();
        let told = printed.iter().filter_map(|line| event(line)).filter(|(of, _)| *of == session);
        let told: Vec<&str> = told.map(|(_, event)| event).collect();
        assert!(kept.len() as u64 >= due, "{session}: {due} events were durable, and {} are kept", kept.len());
        let both = kept.len().min(told.len());
        assert_eq!(kept[..both], told[..both], "{session}: what is kept is what was told");
    }

    for session in &logs {
        world.tether(&["policy", "explain", session]).ended(0);
        let shown = world.tether(&["sessions", "show", "--json", session]).ended(0).stdout;
        let kept = fs::read_to_string(world.log_path(session)).unwrap();
        assert!(kept.starts_with(&shown), "{session}: every whole line can be read");
    }
    world.tether(&["sessions", "list"]).ended(0);
    if logs.contains(&id) {
        let resumed = world.tether(&["run", "--resume", &id, "say on"]).ended(0);
        assert!(resumed.stdout.ends_with("on\n"), "{}", resumed.stdout);
        // A child's may be torn for good: nobody continues it.
        assert_eq!(Log::read(&world.log_path(&id)).last_end(), "completed");
        world.tether(&["policy", "explain", &id]).ended(0);
        // Nor is a lock in the way of whoever comes after that.
        world.tether(&["run", "--resume", &id, "say again"]).ended(0);
    } else {
        let told = world.tether(&["run", "--resume", &id, "say on"]).refused(2);
        assert!(told.contains("no session"), "{told}");
        assert_eq!(world.kept().iter().filter(|name| name.ends_with(".jsonl")).count(), logs.len());
    }
    check_tidied(&world);
}

/// What a session left that never had a log is gone after the next run, once it is old enough to be nobody's.
fn check_tidied(world: &World) {
    let hours_ago = SystemTime::now() - Duration::from_secs(7_200);
    for name in world.kept().iter().filter(|name| name.ends_with(".lock")) {
        let lock = File::options().write(true).open(world.path("home/sessions").join(name)).unwrap();
        lock.set_modified(hours_ago).unwrap();
    }
    world.tether(&["run", "say hi"]).ended(0);
    let kept = world.kept();
    let ours = |name: &String| match name.split_once('.').unwrap() {
        (_, "jsonl") => true,
        // Of a child that nobody continued.
        (id, "lock") => kept.contains(&format!("{id}.jsonl")),
        (_, other) => other.starts_with("jsonl.torn-"),
    };
    assert!(kept.iter().all(ours), "{kept:?}");
}

// D-06 D-50
#[test]
fn whatever_the_instant_the_logs_open_and_the_task_goes_on() {
    // About as many lines as the task prints.
    let all =
        World::new().tether(&["run", "--json", "--sandbox", "workspace-write", TASK]).ended(0).stdout.lines().count();
    assert!(all > 100, "{all}");
    let random = RandomState::new();
    for turn in 0..KILLS {
        let (from, to) = (all * turn / KILLS, all * (turn + 1) / KILLS);
        kill_after(from + usize::try_from(random.hash_one(turn) % (to - from) as u64).unwrap());
    }
}

#[test]
fn before_anything_is_told() {
    kill_after(0);
}

// D-49
#[test]
fn a_task_that_was_accepted_is_done_by_the_next_run() {
    let world = World::new();
    let id = world.tether(&["run", "--sandbox", "workspace-write", "say hi"]).ended(0).id();
    // What a process leaves that is killed between the acceptance and the turn.
    let path = world.log_path(&id);
    let log = fs::read_to_string(&path).unwrap();
    let seq = log.lines().count() - 1;
    let accepted = format!(
        r#"{{"seq":{seq},"time":1,"type":"inbox/accepted","data":{{"id":{seq},"delivery":"followup","content":[{{"type":"text","text":"write a.txt kept"}}],"source":{{"kind":"prompt"}}}}}}"#
    );
    fs::write(&path, format!("{log}{accepted}\n")).unwrap();
    let ran = world.tether(&["run", "--resume", &id, "read a.txt"]).ended(0);
    assert!(ran.stdout.contains("read a.txt: ok: kept"), "{}", ran.stdout);
    assert_eq!(fs::read_to_string(world.path("area/root/a.txt")).unwrap(), "kept");
    assert_eq!(world.logs()[&id].all("turn/end").len(), 3);
}
