//! Models over HTTP, on a server of the tests' own.

mod server;

use std::net::TcpListener;
use std::process::Command;

use serde_json::{Value, json};

use crate::run::process::{Ran, Running};
use crate::run::world::World;
use server::{Reply, Server};

/// Not to be seen in anything that is printed or kept.
const KEY: &str = "sk-test-0123456789";

fn command(world: &World, address: &str, args: &[&str]) -> Command {
    let mut command = world.command(&[&["run", "--model", "openai/mock", "--sandbox", "read-only"], args].concat());
    command.env("OPENAI_BASE_URL", format!("http://{address}/v1")).env("OPENAI_API_KEY", KEY);
    command
}

/// What is printed and kept does not hold the key.
#[track_caller]
fn check_secret(world: &World, ran: &Ran) {
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{}\n{}", ran.stdout, ran.stderr);
    for (path, content) in world.files("") {
        assert!(!String::from_utf8_lossy(&content).contains(KEY), "{}", path.display());
    }
}

/// Replies that end in a failure after `asked` requests, told in one line, with what was `said` before.
#[track_caller]
fn check_failure(replies: Vec<Reply>, asked: usize, said: &str, parts: &[&str]) {
    let server = Server::start(replies);
    let world = World::new();
    let ran = Ran::of(command(&world, &server.address(), &["hello"])).ended(1);
    assert_eq!(ran.stdout, said);
    let told = ran.complaint("the task failed");
    for part in parts {
        assert!(told.contains(part), "{told}\nshould say: {part}");
    }
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with("tether: ")).count(), 1, "{}", ran.stderr);
    assert_eq!(server.asked().len(), asked, "{told}");
    let logs = world.logs();
    assert_eq!(logs.values().next().unwrap().last_end(), "error");
    check_secret(&world, &ran);
    // It can go on once the provider is well again.
    let id = logs.keys().next().unwrap();
    world.tether(&["run", "--resume", id, "--model", "offline/script", "say on"]).ended(0);
}

#[test]
fn a_call_and_an_answer() {
    let server = Server::start(vec![
        Reply::calls("list", &json!({"path": "."})),
        Reply::text(&["There is ", "a.txt."]),
        Reply::text(&["As I said."]),
    ]);
    let world = World::new();
    world.write("area/root/a.txt", "x");
    let ran = Ran::of(command(&world, &server.address(), &["--json", "What is here?"])).ended(0);
    let last = ran.json().pop().unwrap();
    assert_eq!(last["output"], "There is a.txt.");
    assert_eq!(last["usage"], json!({"inputTokens": 20, "outputTokens": 4}));
    crate::json::check_whole(&world, &ran);
    check_secret(&world, &ran);

    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.head.starts_with("POST /v1/chat/completions ")));
    assert!(asked[0].head.to_lowercase().contains(&format!("authorization: bearer {KEY}")));
    let second: Vec<Value> = asked[1].body["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = second.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "user", "assistant", "tool"]);
    assert!(second[4].to_string().contains("a.txt"), "{}", second[4]);
    let tools = asked[0].body["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    let files = ["read", "write", "edit", "list", "glob", "grep"];
    let others = ["bash", "subagent", "subagent_fork", "job_list", "job_output", "job_kill"];
    assert_eq!(names, [&files[..], &others].concat());

    // The next run asks the same model, and what it sends begins with what it sent before.
    let id = ran.id();
    let mut next = world.command(&["run", "--resume", &id, "And now?"]);
    next.env("OPENAI_BASE_URL", format!("http://{}/v1", server.address())).env("OPENAI_API_KEY", KEY);
    assert_eq!(Ran::of(next).ended(0).stdout, "As I said.\n");
    let third = server.asked()[2].body.clone();
    assert_eq!(third["messages"].as_array().unwrap()[..second.len()], second);
    assert_eq!((&third["tools"], &third["model"]), (&asked[0].body["tools"], &json!("mock")));
}

// D-27
#[test]
fn a_child_asks_the_model_of_its_parent() {
    let delegate = json!({"description": "look", "prompt": "Look around."});
    let server = Server::start(vec![
        Reply::calls("subagent", &delegate),
        Reply::calls("write", &json!({"path": "a.txt", "content": "x"})),
        Reply::text(&["I could not write."]),
        Reply::text(&["The child could not write."]),
    ]);
    let world = World::new();
    let ran = Ran::of(command(&world, &server.address(), &["delegate it"])).ended(0);
    assert_eq!(ran.stdout, "The child could not write.\n");
    assert!(ran.stderr.contains("1 denial"), "{}", ran.stderr);
    let asked = server.asked();
    let system = |at: usize| asked[at].body["messages"][0].clone();
    assert_eq!(system(0), system(1), "parent and child share the cached prefix");
    assert_eq!(asked[0].body["tools"], asked[1].body["tools"]);
    assert!(asked[2].body.to_string().contains("sandbox denied: write"), "the child is told");
    assert!(asked[3].body.to_string().contains("Denied to the child"), "and its parent");
    check_secret(&world, &ran);
}

#[test]
fn a_request_that_is_wrong() {
    let body = json!({"error": {"message": "no such model", "type": "invalid_request_error"}});
    check_failure(vec![Reply::status(400, &[], &body)], 1, "", &["openai answered 400: no such model"]);
}

#[test]
fn a_key_that_is_wrong_and_repeated_by_the_provider() {
    let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}\nsee\u{1b}[2J")}});
    check_failure(
        vec![Reply::status(401, &[], &body)],
        1,
        "",
        &["openai answered 401: Incorrect API key provided: ***"],
    );
}

#[test]
fn too_many_requests_for_a_moment() {
    let busy = Reply::status(429, &[("retry-after", "0")], &json!({"error": {"message": "slow down"}}));
    let server = Server::start(vec![busy, Reply::text(&["hello"])]);
    let world = World::new();
    let ran = Ran::of(command(&world, &server.address(), &["hello"])).ended(0);
    assert_eq!((&*ran.stdout, server.asked().len()), ("hello\n", 2));
    assert_eq!(world.logs().values().next().unwrap().all("assistant/message").len(), 1);
}

#[test]
fn too_many_requests_for_good() {
    let busy = |after| Reply::status(429, &[("retry-after", after)], &json!({"error": {"message": "slow down"}}));
    check_failure(vec![busy("0")], 4, "", &["openai answered 429: slow down"]);
    check_failure(vec![busy("3600")], 1, "", &["openai answered 429: slow down"]);
}

#[test]
fn a_provider_that_is_broken() {
    check_failure(vec![Reply::status(500, &[], &json!("<html>\noh no\n</html>"))], 4, "", &["openai answered 500"]);
}

#[test]
fn a_reply_that_is_cut_off() {
    check_failure(vec![Reply::cut(&["Once upon", " a time"])], 1, "Once upon a time\n", &["cut off before its end"]);
    check_failure(vec![Reply::Garbage("data: {not json\n\n")], 1, "", &["openai"]);
}

#[test]
fn a_port_where_nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let world = World::new();
    let ran = Ran::of(command(&world, &address, &["hello"])).ended(1);
    let told = ran.complaint("the task failed");
    assert!(told.contains(&format!("openai cannot be reached at {address}")), "{told}");
    check_secret(&world, &ran);
}

#[test]
fn a_provider_that_says_nothing() {
    let server = Server::start(vec![Reply::Silence]);
    let world = World::new();
    let ran = Ran::of(command(&world, &server.address(), &["--timeout", "1", "hello"])).ended(3);
    ran.complaint("stopped: the time given with --timeout is over");
    assert_eq!(world.logs().values().next().unwrap().last_end(), "aborted");
    check_secret(&world, &ran);
}

#[test]
fn what_was_said_before_the_stop_is_kept() {
    let server = Server::start(vec![Reply::silent_after(&["Half a"])]);
    let world = World::new();
    let mut running = Running::start(command(&world, &server.address(), &["--json", "hello"]));
    running.line_with("request/header");
    server.sent();
    running.signal(rustix::process::Signal::INT);
    let ran = running.finish().ended(130);
    crate::json::check_whole(&world, &ran);
    let log = world.logs().into_values().next().unwrap();
    // What had arrived by then, all or nothing of this one piece.
    for said in log.all("assistant/message") {
        assert_eq!((&said["interrupted"], &said["message"]["content"][0]["text"]), (&json!(true), &json!("Half a")));
    }
}

#[test]
fn a_provider_without_a_key() {
    let world = World::new();
    for (model, variable) in [
        ("anthropic/claude", "ANTHROPIC_API_KEY"),
        ("openai/gpt-5", "OPENAI_API_KEY"),
        ("deepseek/x", "DEEPSEEK_API_KEY"),
        ("gemini/x", "GEMINI_API_KEY"),
    ] {
        let told = world.tether(&["run", "--model", model, "hello"]).refused(2);
        assert!(told.contains(&format!("set {variable}")), "{told}");
    }
    assert!(world.kept().is_empty(), "no session is left");
}

#[test]
fn an_offline_model_that_is_none() {
    let world = World::new();
    for (model, part) in [("offline/nope", "no model `offline/nope`"), ("offline/file", "TETHER_OFFLINE_SCRIPT")] {
        for json in [&[][..], &["--json"]] {
            let told = world.tether(&[&["run", "--model", model, "hello"], json].concat()).refused(2);
            assert!(told.contains(part), "{told}");
        }
    }
    assert!(world.kept().is_empty(), "no session is left");
}

#[test]
fn a_key_from_the_users_own_file() {
    let server = Server::start(vec![Reply::text(&["hello"])]);
    for named in [true, false] {
        let world = World::new();
        let lines = format!("OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL=http://{}/v1\n", server.address());
        let path = if named { "user/keys" } else { "config/tether/.env" };
        let file = world.write(path, lines);
        // The first provider with a key serves where no model is named.
        let mut command = world.command(&["run", "hello"]);
        if named {
            command.arg("--env-file").arg(&file);
        }
        let ran = Ran::of(command).ended(0);
        assert_eq!(ran.stdout, "hello\n");
        assert!(ran.stderr.contains("openai/") && !ran.stderr.contains(KEY), "{}", ran.stderr);
        std::fs::remove_file(file).unwrap();
        check_secret(&world, &ran);
    }
}
