//! The demo, as an editor would use it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

#[test]
fn a_session_works_in_the_directory_that_the_editor_names() {
    let root = tempfile::tempdir().expect("a directory");
    let root = root.path().canonicalize().expect("it is there");
    let mut demo = Command::new(assert_cmd::cargo::cargo_bin("acp-demo"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut to, from) = (demo.stdin.take().expect("piped"), demo.stdout.take().expect("piped"));
    let mut frames = BufReader::new(from).lines();
    let mut ask = |id: u32, method: &str, params: Value| -> Value {
        writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .expect("it reads");
        frames
            .by_ref()
            .map(|frame| serde_json::from_str::<Value>(&frame.expect("it answers")).expect("JSON"))
            .find(|frame| frame["id"] == id)
            .expect("an answer")
    };
    let answer = ask(1, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    assert_eq!(answer["result"]["protocolVersion"], 1);
    let answer = ask(2, "session/new", json!({ "cwd": root, "mcpServers": [] }));
    let session = answer["result"]["sessionId"].as_str().expect("an id").to_owned();
    let prompt = json!([{ "type": "text", "text": "write a.txt hello; write ../b.txt no; say done" }]);
    let answer = ask(3, "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).expect("it was written"), "hello");
    assert!(!root.with_file_name("b.txt").exists(), "nothing outside was");
    drop(to);
    assert!(demo.wait().expect("it ends").success());
}
