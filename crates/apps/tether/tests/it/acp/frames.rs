//! Frames that are none, and those that ask for what there is not.

use std::fmt::Write as _;

use serde_json::json;

use super::client::{Answer, Client};
use crate::run::world::World;

/// The connection still works.
#[track_caller]
fn check_alive(client: &mut Client, session: &str) {
    let prompt = client.prompt(session, "say on");
    assert_eq!(client.stopped(prompt), "end_turn");
}

fn brief(answer: &Answer) -> String {
    match answer {
        Ok(result) => result.to_string(),
        Err((code, message)) => format!("{code} {message}"),
    }
}

#[test]
fn what_is_no_frame_is_told() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let mut told = String::new();
    for bytes in [
        &b"garbage"[..],
        b"{",
        b"\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":\"\xff\"}",
        b"\0",
        b"3",
        b"\"text\"",
        b"null",
        b"{}",
        b"{\"jsonrpc\":\"1.0\",\"id\":\"one\",\"method\":\"initialize\"}",
        b"{\"id\":\"one\",\"method\":\"initialize\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":\"initialize\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":7}",
    ] {
        client.raw([bytes, b"\n"].concat());
        let answer = client.nobodys_answer();
        writeln!(told, "{} -> {}", bytes.escape_ascii(), brief(&answer)).unwrap();
        check_alive(&mut client, &session);
    }
    insta::assert_snapshot!(told);
    // Deeper than anything reads.
    client.raw(format!("{}\n", "[".repeat(200_000)));
    assert_eq!(client.nobodys_answer().unwrap_err().0, -32700);
    // Nothing at all is nothing.
    client.raw("\n\r\n  \n\t\n");
    check_alive(&mut client, &session);
    client.leave();
}

#[test]
fn what_nobody_waits_for_is_dropped() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    for frame in [
        r#"{"jsonrpc":"2.0","id":"nobody asked","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":{"code":-1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":3}"#,
        r#"{"jsonrpc":"2.0","method":"nobody/knows","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"_private"}"#,
    ] {
        client.raw(format!("{frame}\n"));
        check_alive(&mut client, &session);
    }
    client.leave();
}

#[test]
fn a_frame_that_is_too_long_is_told_and_the_next_is_read() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let text = "x".repeat(33 * 1024 * 1024);
    client.raw(format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"{session}\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    ));
    assert_eq!(client.nobodys_answer().unwrap_err().0, -32700);
    check_alive(&mut client, &session);
    assert!(world.logs()[&session].text().len() < 1024 * 1024);
    client.leave();
}

#[test]
fn several_in_one_are_answered_or_refused() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    client.raw("[]\n");
    assert_eq!(client.nobodys_answer().unwrap_err().0, -32600);
    client.raw("[1, 2]\n");
    assert!(matches!(client.nobodys_answer().unwrap_err().0, -32600 | -32700));
    check_alive(&mut client, &session);
    client.leave();
}

#[test]
fn a_request_for_what_there_is_not_names_it() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    let session = client.new_session(&world);
    let mut told = String::new();
    for (method, params) in [
        ("nope/x", json!({})),
        ("session/nope", json!({"sessionId": session})),
        ("fs/read_text_file", json!({"sessionId": session, "path": "/etc/passwd"})),
        ("_private/thing", json!({})),
        ("", json!({})),
        ("authenticate", json!({"methodId": "none"})),
        ("initialize", json!({})),
        ("initialize", json!({"protocolVersion": "one"})),
        ("initialize", json!([])),
        ("session/new", json!({})),
        ("session/load", json!({"sessionId": session})),
        ("session/list", json!({"cursor": 3})),
        ("session/close", json!({"sessionId": 3})),
        ("session/set_mode", json!({"sessionId": session})),
        ("session/set_config_option", json!({"sessionId": session, "value": "x"})),
        ("session/prompt", json!({"sessionId": session, "content": [{"type": "text", "text": "hi"}]})),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "nope"}]})),
        ("session/prompt", json!({"sessionId": session, "prompt": "hi"})),
        ("session/prompt", json!({"sessionId": "nobody", "prompt": [{"type": "text", "text": "hi"}]})),
        ("session/prompt", json!({"sessionId": "x".repeat(100_000), "prompt": []})),
    ] {
        let (code, message) = client.call(method, params).unwrap_err();
        assert!(message.len() < 300 && !message.contains('\n'), "{message}");
        writeln!(told, "{method}: {code} {}", message.replace(&session, "<session 1>")).unwrap();
    }
    insta::assert_snapshot!(told);
    check_alive(&mut client, &session);
    client.leave();
}

#[test]
fn ids_of_any_kind_come_back_as_they_are() {
    let world = World::new();
    let mut client = Client::start(&world, &[]);
    for id in [json!("a-b-c"), json!(""), json!(-5), json!(9_007_199_254_740_993_u64)] {
        client.raw(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}})));
        let answer = client.answer_to(&id).unwrap();
        assert_eq!(answer, json!({"sessions": []}));
    }
    client.leave();
}
