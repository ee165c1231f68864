//! The history that a fork copied.

use serde_json::{Value, json};

use super::forge::{Forge, event};

fn seed_length(forge: &Forge, name: &str) -> u64 {
    let header: Value = serde_json::from_str(forge.log(name).lines().next().unwrap()).unwrap();
    header["seedLength"].as_u64().unwrap()
}

// D-28, D-71
#[tokio::test]
async fn the_header_says_another_length_than_the_log() {
    let forge = Forge::forks().await;
    let seed = seed_length(&forge, "A");
    // The second fork copied the first one's mark, and has its own behind it.
    for name in ["A", "B"] {
        let (intact, seed) = (forge.log(name), seed_length(&forge, name));
        for says in [seed - 1, seed + 1, 1] {
            forge.header(name, |header| header["seedLength"] = json!(says));
            forge.check(&[(name, "seed-length-wrong", Some(seed))]);
        }
        forge.header(name, |header| drop(header.as_object_mut().unwrap().remove("seedLength")));
        forge.check(&[(name, "seed-length-wrong", Some(seed))]);
        forge.write(name, intact);
    }
    for says in [forge.len("B") + 1, u64::MAX] {
        forge.header("B", |header| header["seedLength"] = json!(says));
        forge.check(&[("B", "seed-length-wrong", None), ("B", "no-own-events", None)]);
        forge.check_below(&[forge.id("TOP")], &[("B", "seed-length-wrong", None), ("B", "no-own-events", None)]);
    }
    assert!(seed > 4);
}

// D-28, D-71
#[tokio::test]
async fn the_copy_ends_elsewhere_than_the_parents_last_closed_turn() {
    let forge = Forge::forks().await;
    let (intact, seed) = (forge.log("A"), seed_length(&forge, "A"));
    // It was cut from what is not there any more.
    std::fs::remove_file(forge.path("B")).unwrap();
    // One event less, in header and log alike; then at the end of the turn before.
    for shorter in [seed - 1, 5] {
        forge.write("A", &intact);
        forge.events("A", |events| drop(events.drain(shorter as usize..seed as usize)));
        forge.header("A", |header| header["seedLength"] = json!(shorter));
        forge.check_below(&[forge.id("A")], &[("A", "seed-length-wrong", None)]);
    }
    // Longer than what the parent had when it delegated.
    forge.write("A", &intact);
    forge.header("A", |header| header["parentSeq"] = json!(seed - 1));
    forge.check_below(&[forge.id("A")], &[("A", "seed-length-wrong", None)]);
}

// D-28, D-71
#[test]
fn a_fork_that_the_program_made() {
    let forge = Forge::forked();
    let (intact, seed) = (forge.log("A"), seed_length(&forge, "A"));
    forge.header("A", |header| header["seedLength"] = json!(seed - 1));
    forge.check(&[("A", "seed-length-wrong", Some(seed))]);
    forge.write("A", intact);
    forge.events("A", |events| events[1] = events[1].replace("say one", "say two"));
    forge.check(&[("A", "seed-differs", Some(1))]);
}

// D-28, D-71
#[tokio::test]
async fn a_copy_that_is_none() {
    let forge = Forge::forks().await;
    let intact = forge.log("B");
    // One character of what was said, deep inside.
    forge.events("B", |events| events[2] = events[2].replace("do it", "do iT"));
    forge.check(&[("B", "seed-differs", Some(2))]);
    // A switch that the parent never made, and one whose blank space alone is another.
    forge.write("B", &intact);
    forge.events("B", |events| events[0] = events[0].replace("workspace-write", "danger-full-access"));
    forge.check(&[("B", "seed-differs", Some(0))]);
    forge.write("B", &intact);
    forge.events("B", |events| events[0] = events[0].replace("\"data\":", "\"data\": "));
    forge.check(&[("B", "seed-differs", Some(0))]);
}

// D-05, D-71
#[tokio::test]
async fn a_copy_without_an_end() {
    let forge = Forge::forks().await;
    for name in ["B", "A"] {
        let seed = seed_length(&forge, name);
        forge.events(name, |events| drop(events.remove(seed as usize)));
        forge.check_below(&[forge.id(name)], &[(name, "end-seed-missing", Some(seed))]);
        std::fs::remove_file(forge.path("B")).ok();
    }
}

// D-05, D-71
#[tokio::test]
async fn a_copy_that_ends_twice() {
    let forge = Forge::forks().await;
    let (seed, end) = (seed_length(&forge, "B"), forge.len("B"));
    let mark = event("session/end-seed", json!({}));
    forge.events("B", |events| {
        events.insert(seed as usize + 1, mark.clone());
        events.push(mark);
    });
    let expected = [seed + 1, end + 1].map(|seq| ("B", "end-seed-duplicated", Some(seq)));
    forge.check(&expected);
}

// D-71
#[test]
fn an_end_of_what_was_never_copied() {
    let forge = Forge::family();
    let end = forge.len("B");
    forge.events("B", |events| events.push(event("session/end-seed", json!({}))));
    forge.check(&[("B", "end-seed-unfounded", Some(end))]);
    forge.events("B", |events| events.insert(0, event("session/end-seed", json!({}))));
    forge.check(&[0, end + 1].map(|seq| ("B", "end-seed-unfounded", Some(seq))));
}

// D-12, D-71
#[tokio::test]
async fn a_fork_without_an_event_of_its_own() {
    let forge = Forge::forks().await;
    let seed = seed_length(&forge, "B");
    forge.events("B", |events| events.truncate(seed as usize));
    let expected = [("B", "no-own-events", None), ("B", "end-seed-missing", Some(seed))];
    forge.check(&expected);
}

// D-71
#[tokio::test]
async fn the_stamps_of_a_fork_stand_behind_its_copy() {
    let forge = Forge::forks().await;
    let stamp = seed_length(&forge, "B") + 1;
    forge.events("B", |events| drop(events.remove(stamp as usize)));
    forge.check(&[("B", "stamp-missing", None)]);
    forge.events("B", |events| drop(events.remove(stamp as usize)));
    // The copy holds a pin of the parent's: it is none of this child's.
    forge.check(&[("B", "stamp-missing", None), ("B", "pin-missing", None)]);
    forge.events("B", |events| drop(events.remove(stamp as usize)));
    let all = [("B", "stamp-missing", None), ("B", "pin-missing", None), ("B", "descriptor-missing", None)];
    forge.check(&all);
}
