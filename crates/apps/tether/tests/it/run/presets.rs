use serde_json::{Value, json};

use super::logs::Log;
use super::world::World;

/// What was chosen and switched, in order.
fn choices(log: &Log) -> Vec<(String, Value)> {
    let tags = ["permission/preset", "sandbox/mode", "approval/policy"];
    let events = log.events();
    let chosen = events.iter().filter(|event| tags.contains(&event.tag));
    chosen.map(|event| (event.tag.to_owned(), event.data())).collect()
}

fn chosen(name: &str) -> (String, Value) {
    ("permission/preset".into(), json!({"name": name}))
}

fn mode(mode: &str) -> (String, Value) {
    ("sandbox/mode".into(), json!({"mode": mode, "source": "preset"}))
}

fn policy(policy: &str) -> (String, Value) {
    ("approval/policy".into(), json!({"policy": policy, "source": "preset"}))
}

#[test]
fn a_new_session_begins_with_its_preset() {
    let world = World::new();
    world.config("[sandbox]\ninitial_override = false");
    let ran =
        world.tether(&["run", "--preset", "workspace-write", "write a.txt x; spawn A { write b.txt y }"]).ended(0);
    let log = &world.logs()[&ran.id()];
    assert_eq!(choices(log), [chosen("workspace-write"), mode("workspace-write")]);
    assert!(world.path("area/root/a.txt").exists() && world.path("area/root/b.txt").exists());
    // Recorded also where it is the default, so that later defaults never alter it.
    let ran = world.tether(&["run", "--preset", "read-only", "write c.txt x"]).ended(0);
    assert_eq!(choices(&world.logs()[&ran.id()]), [chosen("read-only"), mode("read-only")]);
    assert!(!world.path("area/root/c.txt").exists());
    // And in the place of what a session without one records.
    world.config("");
    let ran = world.tether(&["run", "--preset", "danger-full-access", "say hi"]).ended(0);
    let wild = [chosen("danger-full-access"), policy("never"), mode("danger-full-access")];
    assert_eq!(choices(&world.logs()[&ran.id()]), wild);
}

#[test]
fn a_session_that_goes_on_turns_only_what_changes() {
    let world = World::new();
    world.config("[permission.presets.careful]\nsandbox = 'read-only'\napproval = 'never'");
    let id = world.tether(&["run", "--preset", "read-only", "say hi"]).ended(0).id();
    world.tether(&["run", "--resume", &id, "--preset", "careful", "say hi"]).ended(0);
    let careful = [chosen("read-only"), mode("read-only"), chosen("careful"), policy("never")];
    assert_eq!(choices(&world.logs()[&id]), careful);
    // With none, nothing is switched.
    world.tether(&["run", "--resume", &id, "say hi"]).ended(0);
    assert_eq!(choices(&world.logs()[&id]), careful);
}

#[test]
fn a_preset_that_there_is_not_switches_nothing() {
    let world = World::new();
    world.config("[permission.presets.careful]\nsandbox = 'read-only'\napproval = 'never'");
    let known =
        "no permission preset named `wild`: use `read-only`, `workspace-write`, `danger-full-access` or `careful`";
    let told = world.tether(&["run", "--preset", "wild", "say hi"]).refused(2);
    assert!(told.ends_with(known), "{told}");
    assert!(world.kept().is_empty(), "no session was made");
    let id = world.tether(&["run", "say hi"]).ended(0).id();
    let before = world.logs()[&id].text().to_owned();
    world.tether(&["run", "--resume", &id, "--preset", "wild", "say hi"]).refused(2);
    assert_eq!(world.logs()[&id].text(), before);
}

#[test]
fn a_preset_is_both_switches() {
    for (switch, value) in [("--sandbox", "read-only"), ("--approval", "never")] {
        let told = World::new().tether(&["run", "--preset", "read-only", switch, value, "say hi"]).refused(2);
        assert!(told.contains("'--preset <NAME>'") && told.contains(switch), "{told}");
    }
}
