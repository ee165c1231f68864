use std::fs;
use std::path::PathBuf;

use super::check_refused;
use crate::run::world::World;

/// A session with one turn.
fn kept(world: &World) -> (String, PathBuf) {
    let id = world.tether(&["run", "say hi"]).ended(0).id();
    let path = world.log_path(&id);
    (id, path)
}

#[test]
fn a_torn_tail_is_put_aside_and_told() {
    let world = World::new();
    let (id, path) = kept(&world);
    let (whole, torn) = (fs::read(&path).unwrap(), br#"{"seq":12,"time":1,"ty"#);
    fs::write(&path, [&whole[..], torn].concat()).unwrap();

    let shown = world.tether(&["sessions", "show", &id]).ended(0);
    assert!(shown.complaint("torn by a crash").contains(&format!("the last {} bytes", torn.len())));
    assert_eq!(fs::read(&path).unwrap(), [&whole[..], torn].concat(), "a reader never repairs");

    let ran = world.tether(&["run", "--resume", &id, "say on"]).ended(0);
    let told = ran.complaint("were not a whole line");
    let aside = world.kept().into_iter().find(|name| name.contains(".torn-")).expect("the torn bytes are kept");
    assert!(told.starts_with("tether: ") && told.contains(&aside), "{told}");
    assert_eq!(fs::read(path.with_file_name(&aside)).unwrap(), torn);
    assert!(fs::read(&path).unwrap().starts_with(&whole));
    assert_eq!(world.logs()[&id].all("turn/end").len(), 2);
    // It is told once.
    let ran = world.tether(&["run", "--resume", &id, "say more"]).ended(0);
    assert!(!ran.stderr.contains("whole line"), "{}", ran.stderr);
}

#[test]
fn a_turn_that_was_cut_off_is_closed_and_told() {
    let world = World::new();
    let id = world.tether(&["run", "write a.txt x; say hi"]).ended(0).id();
    let path = world.log_path(&id);
    let whole = fs::read_to_string(&path).unwrap();
    let at = whole.find("\"type\":\"tool/result\"").unwrap();
    let kept = &whole[..=whole[..at].rfind('\n').unwrap()];
    fs::write(&path, kept).unwrap();

    let ran = world.tether(&["run", "--resume", &id, "say on"]).ended(0);
    ran.complaint("turn 1 had been interrupted; it is closed now");
    let log = &world.logs()[&id];
    assert!(log.text().starts_with(kept), "nothing is cut");
    assert_eq!(log.all("tool/result")[0]["error"]["code"], "interrupted");
    assert_eq!(log.all("turn/end")[0]["reason"]["kind"], "interrupted");
    assert_eq!(log.last_end(), "completed");
}

/// Damages a log and holds every command to naming the line and changing nothing.
#[track_caller]
fn check_damage(line: usize, damage: impl Fn(&str) -> Vec<u8>) {
    let world = World::new();
    let (id, path) = kept(&world);
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().enumerate().map(|(at, text)| match at + 1 == line {
        true => damage(text),
        false => text.as_bytes().to_vec(),
    });
    fs::write(&path, lines.flat_map(|line| [&line[..], b"\n"].concat()).collect::<Vec<u8>>()).unwrap();
    let place = format!("{}:{line} is damaged", path.display());
    let resume = ["run", "--resume", &id, "--sandbox", "danger-full-access", "say on"];
    check_refused(&world, world.command(&resume), b"", 1, &[&place]);
    for command in [["sessions", "show", &id], ["policy", "explain", &id]] {
        check_refused(&world, world.command(&command), b"", 1, &[&place]);
    }
    let listed = world.tether(&["sessions", "list"]).ended(0).stdout;
    assert!(listed.contains(&id), "{listed}");
}

#[test]
fn damage_is_named_and_nothing_is_changed() {
    let replaced = |by: &'static [u8]| move |_: &str| by.to_vec();
    check_damage(1, replaced(b"{}"));
    check_damage(1, |line| line.replace("\"format\":1", "\"format\":2").into());
    check_damage(1, |line| line.replace("\"cwd\"", "\"seedLength\":3,\"cwd\"").into());
    check_damage(4, replaced(b""));
    check_damage(4, replaced(b"not json"));
    check_damage(4, replaced(b"\xff\xfe"));
    check_damage(4, |line| line.replace("\"seq\":2", "\"seq\":3").into());
    check_damage(4, |line| line[..line.len() - 1].into());
    check_damage(5, |line| line.replace("\"turn\":1", "\"turn\":\"one\"").into());
}

#[test]
fn a_log_without_a_whole_header() {
    for text in ["", "{\"format\":1"] {
        let world = World::new();
        let (id, path) = kept(&world);
        fs::write(&path, text).unwrap();
        check_refused(&world, world.command(&["run", "--resume", &id, "say on"]), b"", 1, &[":1 is damaged", "header"]);
    }
}

#[test]
fn a_log_under_another_name() {
    let world = World::new();
    let (id, path) = kept(&world);
    let other = "01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01";
    fs::rename(&path, world.log_path(other)).unwrap();
    check_refused(&world, world.command(&["run", "--resume", other, "say on"]), b"", 1, &[other, &id]);
}

#[test]
fn a_log_that_is_not_a_file() {
    let world = World::new();
    let (id, path) = kept(&world);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    check_refused(&world, world.command(&["run", "--resume", &id, "say on"]), b"", 1, &[&id]);
}

#[test]
fn what_others_wrote_is_shown_and_not_continued() {
    let world = World::new();
    let (id, path) = kept(&world);
    let ours = fs::read_to_string(&path).unwrap();
    let seq = ours.lines().count() - 1;
    let theirs = format!(r#"{{"seq":{seq},"time":1,"type":"weather/rain","data":{{"mm":3}}}}"#);
    fs::write(&path, format!("{ours}{theirs}\n")).unwrap();
    let resume = ["run", "--resume", &id, "say on"];
    check_refused(&world, world.command(&resume), b"", 1, &["weather/rain", "can be read, not continued"]);
    let shown = world.tether(&["sessions", "show", &id]).ended(0).stdout;
    assert!(shown.contains("weather/rain"), "{shown}");
    let raw = world.tether(&["sessions", "show", "--json", &id]).ended(0).stdout;
    assert!(raw.ends_with(&format!("{theirs}\n")), "{raw}");

    // Unless they say that it does not matter.
    fs::write(&path, format!("{ours}{}\n", theirs.replace(r#","data""#, r#","ignorable":true,"data""#))).unwrap();
    world.tether(&resume).ended(0);
    assert!(fs::read_to_string(&path).unwrap().starts_with(&ours));
}

// D-50
#[test]
fn two_processes_never_write_one_session() {
    let world = World::new();
    let mut first = world.start(&["run", "--json", "hang"]);
    let first_line = first.line_with("\"session\"");
    let id = serde_json::from_str::<serde_json::Value>(&first_line).unwrap()["id"].as_str().unwrap().to_owned();
    first.line_with("request/header");
    let resume = ["run", "--resume", &id, "--sandbox", "danger-full-access", "say on"];
    let told = world.tether(&resume).refused(1);
    assert!(told.contains(&format!("is open in process {}", first.pid())), "{told}");
    // Reading is free.
    world.tether(&["policy", "explain", &id]).ended(0);
    world.tether(&["sessions", "show", &id]).ended(0);
    first.kill();
    world.tether(&resume).ended(0);
    let log = &world.logs()[&id];
    assert_eq!(log.all("sandbox/mode").len(), 2, "the one that was refused wrote nothing: {}", log.text());
}
