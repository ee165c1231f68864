use super::process::Ran;
use super::world::World;
use crate::json::check_whole;

/// Stopped by a budget: told which one and what was used, and saved.
#[track_caller]
fn check(world: &World, ran: Ran, budget: &str) {
    let ran = ran.ended(3);
    let told = ran.complaint("budget");
    assert!(told.starts_with(&format!("tether: stopped: the budget of {budget} for this tree of agents")), "{told}");
    assert!(told.ends_with(" used"), "{told}");
    let log = &world.logs()[&ran.id()];
    let reason = log.all("turn/end").last().unwrap()["reason"].clone();
    assert_eq!(reason["kind"], "aborted");
    assert!(told.ends_with(reason["cause"].as_str().unwrap()), "{reason}");
}

// D-52
#[test]
fn tokens() {
    let world = World::new();
    let task = "list; list; spawn A { list }; say done";
    check(&world, world.tether(&["run", "--budget-tokens", "3", task]), "3 tokens");
    world.config("[budget]\ntokens = 4");
    check(&world, world.tether(&["run", task]), "4 tokens");
    // A project lowers it and cannot raise it.
    world.write("area/root/.tether/config.toml", "[budget]\ntokens = 2");
    check(&world, world.tether(&["run", task]), "2 tokens");
    world.write("area/root/.tether/config.toml", "[budget]\ntokens = 1_000_000");
    check(&world, world.tether(&["run", task]), "4 tokens");
    world.tether(&["run", "--budget-tokens", "1000000", task]).ended(0);
}

// D-52
#[test]
fn time_stops_a_child_that_hangs_and_its_parent() {
    let world = World::new();
    world.config("[budget]\nseconds = 1");
    let ran = world.tether(&["run", "--json", "spawn A { hang }"]);
    check_whole(&world, &ran);
    let last = ran.json().pop().unwrap();
    assert_eq!((&last["type"], &last["stopReason"]), (&"result".into(), &"aborted".into()));
    assert!(world.logs().values().all(|log| log.last_end() == "aborted"));
    check(&world, ran, "1 seconds");
}

// D-52
#[test]
fn children() {
    let world = World::new();
    let two = "spawn A { hang } & spawn B { hang }";
    let told = |args: &[&str]| world.tether(args);
    let ran = told(&["run", "--max-children", "0", "spawn A { say hi }"]).ended(0);
    assert!(
        ran.stdout.contains("the budget of 0 children at once for this tree of agents is used up"),
        "{}",
        ran.stdout
    );
    let ran = told(&["run", "--max-children", "1", "--timeout", "1", two]).ended(3);
    assert!(ran.stderr.contains("the budget of 1 children at once"), "{}", ran.stderr);
    world.config("[budget]\nmax_children_total = 1");
    let ran = told(&["run", "spawn A { say hi }; spawn B { say hi }"]).ended(0);
    assert!(ran.stdout.contains("the budget of 1 children in total"), "{}", ran.stdout);
    // A refused start is the model's to deal with, and no end.
    assert!(!ran.stderr.contains("stopped"), "{}", ran.stderr);
}

#[test]
fn what_is_no_budget() {
    for args in [["--budget-tokens", "0"], ["--budget-tokens", "1e3"], ["--max-children", "-1"], ["--max-depth", "x"]] {
        let told = World::new().tether(&[&["run"], &args[..], &["say hi"]].concat()).refused(2);
        assert!(told.contains(args[0]) || told.contains(args[1]), "{told}");
    }
}
