//! Sessions over the connection, and after it.

use std::fs;

use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::show::{said, shown};
use crate::run::world::World;

fn load(client: &mut Client, world: &World, session: &str) -> Answer {
    client.call("session/load", json!({"sessionId": session, "cwd": world.root(), "mcpServers": []}))
}

fn resume(client: &mut Client, world: &World, session: &str) -> Answer {
    client.call("session/resume", json!({"sessionId": session, "cwd": world.root(), "mcpServers": []}))
}

fn on(client: &mut Client, method: &str, session: &str) -> Answer {
    client.call(method, json!({"sessionId": session}))
}

#[track_caller]
fn ends(client: &mut Client, session: &str, task: &str) {
    let prompt = client.prompt(session, task);
    assert_eq!(client.stopped(prompt), "end_turn");
}

#[test]
fn another_process_loads_it_and_goes_on() {
    let world = World::new();
    let mut client = Client::start(&world, &["--preset", "workspace-write"]);
    let session = client.new_session(&world);
    let task = "write a.txt \"one\\n\"; spawn A { list }; write ../b.txt x; say done";
    ends(&mut client, &session, task);
    client.leave();

    let mut client = Client::start(&world, &[]);
    let mut loaded = load(&mut client, &world, &session).unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], "workspace-write", "its own, not this process's");
    loaded["modes"].take();
    // Everything was sent before the answer.
    let history = client.updates(&session);
    insta::assert_snapshot!(shown(&world, &[&session], &history));
    ends(&mut client, &session, "say on");
    assert_eq!(said(&client.updates(&session)), "on");
    let log = &world.logs()[&session];
    assert_eq!(log.all("turn/start").len(), 2);
    client.leave();
}

#[test]
fn it_is_there_before_it_is_told_of() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    assert_eq!(world.logs()[&session].all("sandbox/mode").len(), 1, "with the mode that it begins with");
    // Killed at once, it can be loaded.
    drop(client);
    let mut client = Client::start(&world, &[]);
    load(&mut client, &world, &session).unwrap();
    ends(&mut client, &session, "say on");
    client.leave();
}

/// As a client is known to send it.
#[test]
fn a_relative_directory_is_beside_the_program() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let mut open = |cwd: &str| client.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let opened = open(".").unwrap();
    for wrong in ["", "nowhere", "../nowhere"] {
        assert_eq!(open(wrong).unwrap_err().0, -32602, "{wrong}");
    }
    let session = opened["sessionId"].as_str().unwrap();
    assert_eq!(world.logs()[session].header()["cwd"], json!(world.root().canonicalize().unwrap()));
    client.leave();
}

#[test]
fn it_is_resumed_without_its_history() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    ends(&mut client, &session, "say first");
    on(&mut client, "session/close", &session).unwrap();
    client.updates(&session);
    let resumed = resume(&mut client, &world, &session).unwrap();
    assert_eq!(resumed["modes"]["currentModeId"], "read-only");
    ends(&mut client, &session, "say second");
    let updates = client.updates(&session);
    assert_eq!(said(&updates), "second");
    assert!(updates.iter().all(|update| update["sessionUpdate"] != "user_message_chunk"), "{updates:#?}");
    client.leave();
}

#[test]
fn one_that_is_open_here_is_loaded_from_the_start() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    ends(&mut client, &session, "say first");
    client.updates(&session);
    load(&mut client, &world, &session).unwrap();
    assert_eq!(said(&client.updates(&session)), "first");
    let prompt = client.prompt(&session, "say \"I wait\" & hang");
    client.update(&session, "agent_message_chunk");
    let (code, message) = load(&mut client, &world, &session).unwrap_err();
    assert_eq!(code, -32600, "it is busy: {message}");
    client.cancel(&session);
    assert_eq!(client.stopped(prompt), "cancelled");
    client.leave();
}

#[test]
fn what_cannot_be_loaded_says_why() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    ends(&mut client, &session, "spawn A { say hi }; say done");
    let child = world.logs().into_keys().find(|id| *id != session).unwrap();
    let damaged = client.new_session(&world);
    on(&mut client, "session/close", &damaged).unwrap();
    let path = world.log_path(&damaged);
    fs::write(&path, fs::read_to_string(&path).unwrap() + "{\"seq\":77}\n{}\n").unwrap();

    let mut other = Client::start(&world, &[]);
    for (id, code, why) in [
        ("01890000-0000-7000-8000-000000000000", -32002, "no session"),
        ("../../etc/passwd", -32002, "no session"),
        ("", -32002, "no session"),
        (&*session, -32600, "process"),
        (&child, -32602, "parent"),
        (&damaged, -32603, ""),
    ] {
        for method in ["session/load", "session/resume"] {
            let refused = other.call(method, json!({"sessionId": id, "cwd": world.root(), "mcpServers": []}));
            let refused = refused.unwrap_err();
            assert!(refused.0 == code && refused.1.contains(why), "{method} {id}: {refused:?}");
            assert!(!refused.1.contains('\n'), "{refused:?}");
        }
    }
    for cwd in [world.path("area"), world.path("nowhere"), "area".into(), world.path("config/tether/config.toml")] {
        let refused = other.call("session/resume", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
        assert!(matches!(refused.unwrap_err().0, -32600 | -32602), "{}", cwd.display());
    }
    client.leave();
    let refused =
        other.call("session/load", json!({"sessionId": session, "cwd": world.path("area"), "mcpServers": []}));
    let refused = refused.unwrap_err();
    assert!(refused.0 == -32602 && refused.1.contains("root"), "{refused:?}");
    // None of these keeps it from the one who may.
    load(&mut other, &world, &session).unwrap();
    other.leave();
}

#[test]
fn a_session_needs_a_root() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let file = world.write("area/file", "");
    for params in [
        json!({"cwd": "area", "mcpServers": []}),
        json!({"cwd": world.path("nowhere"), "mcpServers": []}),
        json!({"cwd": file, "mcpServers": []}),
        json!({"cwd": world.root(), "mcpServers": [], "additionalDirectories": [world.path("area")]}),
        json!({"cwd": 3, "mcpServers": []}),
        json!({"mcpServers": []}),
    ] {
        let (code, message) = client.call("session/new", params.clone()).unwrap_err();
        assert_eq!(code, -32602, "{params}: {message}");
    }
    assert_eq!(world.kept(), Vec::<String>::new());
    client.leave();
}

/// Every page of a list: the sessions, and how many pages.
fn list(client: &mut Client, filter: &Value) -> (Vec<Value>, usize) {
    let (mut all, mut pages, mut params) = (Vec::new(), 0, filter.clone());
    loop {
        let page = client.call("session/list", params.clone()).unwrap();
        all.extend(page["sessions"].as_array().unwrap().iter().cloned());
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(cursor) => params["cursor"] = cursor.into(),
            None => return (all, pages),
        }
    }
}

#[test]
fn they_are_listed_by_page_and_place() {
    let world = World::new();
    fs::create_dir(world.path("area/other")).unwrap();
    let mut client = Client::start(&world, &[]);
    assert_eq!(list(&mut client, &json!({})), (Vec::new(), 1));
    let first = client.new_session(&world);
    ends(&mut client, &first, "# what is it?\nspawn A { say hi }; say done");
    let mut own = vec![first];
    for _ in 0..100 {
        let session = client.new_session(&world);
        on(&mut client, "session/close", &session).unwrap();
        own.push(session);
    }
    let elsewhere = client.call("session/new", json!({"cwd": world.path("area/other"), "mcpServers": []})).unwrap();
    let elsewhere = elsewhere["sessionId"].as_str().unwrap();

    let (all, pages) = list(&mut client, &json!({}));
    assert_eq!((all.len(), pages), (102, 2), "with no child");
    assert_eq!(all[0]["sessionId"], elsewhere, "the newest first");
    let (here, _) = list(&mut client, &json!({"cwd": world.root()}));
    let ids: Vec<_> = here.iter().map(|info| info["sessionId"].as_str().unwrap()).collect();
    assert!(own.iter().rev().eq(ids.iter()), "each once");
    let last = here.last().unwrap();
    assert_eq!((&last["title"], &last["cwd"]), (&"# what is it?".into(), &world.root().to_str().unwrap().into()));
    assert!(last["updatedAt"].as_str().unwrap().ends_with('Z'), "{last}");
    assert_eq!(list(&mut client, &json!({"cwd": world.path("nowhere")})), (Vec::new(), 1));
    assert_eq!(client.call("session/list", json!({"cursor": "x"})).unwrap_err().0, -32602);
    client.leave();
}

#[test]
fn one_that_is_closed_is_not_open() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let prompt = client.prompt(&session, "say \"I wait\" & hang");
    client.update(&session, "agent_message_chunk");
    on(&mut client, "session/close", &session).unwrap();
    assert_eq!(client.stopped(prompt), "cancelled", "its turn ends with it");
    assert_eq!(world.logs()[&session].last_end(), "aborted");
    for (method, more) in [
        ("session/prompt", json!({"prompt": [{"type": "text", "text": "say on"}]})),
        ("session/set_mode", json!({"modeId": "read-only"})),
        ("session/set_config_option", json!({"configId": "model", "value": "offline/script"})),
        ("session/close", json!({})),
    ] {
        let mut params = more;
        params["sessionId"] = session.as_str().into();
        assert_eq!(client.call(method, params).unwrap_err().0, -32002, "{method}");
    }
    // Another process may have it now.
    let mut other = Client::start(&world, &[]);
    load(&mut other, &world, &session).unwrap();
    other.leave();
    client.leave();
}

#[test]
fn what_is_deleted_is_gone_from_the_disk() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let kept = client.new_session(&world);
    let session = client.new_session(&world);
    ends(&mut client, &session, "spawn A { spawn B { say deep }; say hi }; say done");
    assert_eq!(world.logs().len(), 4);
    let child = world.logs().into_keys().find(|id| *id != session && *id != kept).unwrap();
    let (code, message) = on(&mut client, "session/delete", &child).unwrap_err();
    assert_eq!(code, -32602, "{message}");
    assert_eq!(world.logs().len(), 4);
    // While it is open, and at work.
    let prompt = client.prompt(&session, "say \"I wait\" & hang");
    client.update(&session, "agent_message_chunk");
    on(&mut client, "session/delete", &session).unwrap();
    assert_eq!(client.stopped(prompt), "cancelled");
    assert_eq!(world.kept().iter().filter(|name| name.ends_with(".jsonl")).count(), 1, "{:?}", world.kept());
    let is_left = |name: &String| name.starts_with(&kept) || name.starts_with("spare-");
    assert!(world.kept().iter().all(is_left), "{:?}", world.kept());
    for id in [&*session, "01890000-0000-7000-8000-000000000000", "nobody"] {
        assert_eq!(on(&mut client, "session/delete", id).unwrap_err().0, -32002);
    }
    // One that another process has open stays.
    let mut other = Client::start(&world, &[]);
    let (code, message) = on(&mut other, "session/delete", &kept).unwrap_err();
    assert_eq!(code, -32600, "{message}");
    assert_eq!(world.logs().len(), 1);
    other.leave();
    client.leave();
}
