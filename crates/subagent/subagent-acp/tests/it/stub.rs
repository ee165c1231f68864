//! An agent of the protocol that does what its prompt says, and misbehaves as its arguments say.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is what an agent talks with")]
#![expect(clippy::zombie_processes, reason = "an agent whose tools outlive it")]

use std::fs;
use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, Stdio, exit};
use std::time::Duration;

use serde_json::{Value, json};

/// The first argument of the agent. The second says how it misbehaves.
pub(crate) const STUB: &str = "__stub-agent";

/// Long after every deadline.
const FOREVER: Duration = Duration::from_secs(100_000);

pub(crate) fn run_if_asked() -> Option<i32> {
    let args: Vec<String> = std::env::args().collect();
    (args.get(1)? == STUB).then(|| Stub { manner: args[2].clone(), asked: 0, input: io::stdin().lock() }.run())
}

struct Stub {
    manner: String,
    asked: u64,
    input: io::StdinLock<'static>,
}

fn out(mut message: Value) {
    message["jsonrpc"] = "2.0".into();
    let mut stdout = io::stdout().lock();
    if writeln!(stdout, "{message}").and_then(|()| stdout.flush()).is_err() {
        exit(9);
    }
}

fn answer(id: &Value, result: Value) {
    out(json!({ "id": id, "result": result }));
}

fn refuse(id: &Value, code: i32, message: &str, data: Value) {
    out(json!({ "id": id, "error": { "code": code, "message": message, "data": data } }));
}

fn update(update: Value) {
    out(json!({ "method": "session/update", "params": { "sessionId": "s1", "update": update } }));
}

fn say(text: &str) {
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }));
}

impl Stub {
    fn run(mut self) -> i32 {
        if self.manner == "flood-errors" {
            let line = "it is about to work\n".repeat(1_000);
            (0..2_000).for_each(|_| eprint!("{line}"));
        }
        if self.manner == "chatty" {
            (0..100).for_each(|n| println!("loading {n}"));
        }
        while let Some(message) = self.read() {
            let (id, params) = (message["id"].clone(), message["params"].clone());
            match message["method"].as_str() {
                Some("initialize") => self.initialize(&id, &params),
                Some("authenticate") => match params["methodId"].as_str() {
                    Some("key") => answer(&id, json!({})),
                    _ => refuse(&id, -32000, "who are you", Value::Null),
                },
                Some("session/new") => self.open(&id, &params),
                Some("session/set_mode") => match params["modeId"].as_str() {
                    Some("code") => answer(&id, json!({})),
                    _ => refuse(&id, -32602, "no such mode", Value::Null),
                },
                Some("session/prompt") => self.prompt(&id, params["prompt"][0]["text"].as_str().unwrap_or_default()),
                Some(_) if !id.is_null() => refuse(&id, -32601, "what", Value::Null),
                _ => {}
            }
        }
        if self.manner == "lingers" {
            std::thread::sleep(FOREVER);
        }
        0
    }

    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.input.read_line(&mut line).ok().filter(|read| *read > 0)?;
        serde_json::from_str(&line).ok()
    }

    fn initialize(&self, id: &Value, params: &Value) {
        if params["protocolVersion"] != 1 || params["clientCapabilities"]["fs"]["readTextFile"] == true {
            return refuse(id, -32602, "exactly 1, and no files", params.clone());
        }
        match &*self.manner {
            "hang-initialize" => std::thread::sleep(FOREVER),
            "version-2" => return answer(id, json!({ "protocolVersion": 2, "agentCapabilities": {} })),
            "no-version" => return answer(id, json!({ "agentCapabilities": {} })),
            "refuse-initialize" => return refuse(id, -32603, "Internal error", json!({ "details": "it rains" })),
            "exit-initialize" => {
                let token = std::env::var("STUB_TOKEN").unwrap_or_default();
                eprintln!("cannot log in with {token}\nHOME={}", std::env::var("HOME").unwrap_or_default());
                eprintln!("{}", json!({ "jsonrpc": "2.0", "frame": 1 }));
                exit(7);
            }
            "garbage" => (0..2_000).for_each(|_| println!("\u{1}what is this")),
            "huge" => {
                let mut stdout = io::stdout().lock();
                let piece = "x".repeat(1024 * 1024);
                (0..64).for_each(|_| drop(write!(stdout, "{piece}")));
                let _ = stdout.flush();
                std::thread::sleep(FOREVER);
            }
            _ => {}
        }
        let methods = json!([{ "id": "key", "name": "Key" }]);
        answer(id, json!({ "protocolVersion": 1, "agentCapabilities": {}, "authMethods": methods }));
    }

    fn open(&self, id: &Value, params: &Value) {
        match &*self.manner {
            "hang-new" => std::thread::sleep(FOREVER),
            "refuse-new" => return refuse(id, -32000, "log in first", Value::Null),
            "exit-new" => exit(3),
            "closes" => {
                // Alive, but silent for good.
                rustix::stdio::dup2_stdout(fs::File::open("/dev/null").unwrap()).unwrap();
                std::thread::sleep(FOREVER);
            }
            _ => {}
        }
        if params["cwd"].as_str().is_none_or(|cwd| !cwd.starts_with('/')) {
            return refuse(id, -32602, "where", Value::Null);
        }
        let modes = json!([{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }]);
        answer(id, json!({ "sessionId": "s1", "modes": { "currentModeId": "plan", "availableModes": modes } }));
    }

    fn prompt(&mut self, id: &Value, text: &str) {
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut stop = "end_turn";
        match verb {
            "say" => rest.split_inclusive(' ').for_each(say),
            "hang" => {
                while let Some(message) = self.read() {
                    if message["method"] == "session/cancel" {
                        return answer(id, json!({ "stopReason": "cancelled" }));
                    }
                }
            }
            "wait" => {
                say("up");
                return self.prompt(id, "hang");
            }
            "deaf" => {
                say("up");
                std::thread::sleep(FOREVER);
            }
            "fail" => return refuse(id, -32603, "Internal error", json!({ "details": "the model is away" })),
            "leak" => {
                let token = std::env::var("STUB_TOKEN").unwrap_or_default();
                return refuse(id, -32603, &format!("{} {token}", "long ".repeat(2_000)), Value::Null);
            }
            "panic" => {
                eprintln!("the plan was: {text}");
                exit(101)
            }
            "half" => {
                print!("{{\"jsonrpc\":\"2.0\",\"id\":");
                drop(io::stdout().flush());
                exit(0);
            }
            "stop" => stop = Box::leak(rest.to_owned().into_boxed_str()),
            "where" => say(&std::env::current_dir().unwrap().display().to_string()),
            "variables" => std::env::vars().for_each(|(name, value)| say(&format!("{name}={value}\n"))),
            "write" => self.write(rest),
            "sh" => self.sh(rest),
            "ask" => self.ask(rest),
            "unknown" => {
                out(json!({ "id": 77, "method": "fs/write_text_file", "params": { "path": "/x", "content": "y" } }));
                say(&self.read().unwrap_or_default()["error"]["code"].to_string());
            }
            "strange" => {
                out(json!({ "method": "session/update", "params": { "sessionId": "s2", "update": {
                    "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "another's" } } } }));
                update(json!({ "sessionUpdate": "of a later version", "x": [1] }));
                update(json!({ "sessionUpdate": "agent_message_chunk" }));
                out(json!({ "method": "private/note", "params": [1, 2] }));
                out(json!({ "id": 4_242, "result": "to nothing" }));
                println!("[{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"batched\"}}]\nnull\n17\n\"x\"");
                say("all the same");
            }
            "flood" => {
                let piece = "flooded ".repeat(1_000);
                for _ in 0..8_000 {
                    say(&piece);
                }
            }
            "nonsense" => {
                let said = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s1", "update":
                    { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "I begin" } } } });
                // In one piece, with which all of it is read.
                let mut stdout = io::stdout().lock();
                stdout.write_all(format!("{said}\n{}", "?\n".repeat(1_001)).as_bytes()).unwrap();
                stdout.flush().unwrap();
                while self.read().is_some() {}
                exit(0);
            }
            "questions" => {
                for n in 0..10_000 {
                    out(json!({ "id": format!("q{n}"), "method": "session/request_permission", "params": {} }));
                }
                let answers = (0..10_000).filter_map(|_| self.read()).filter(|it| it["result"].is_object()).count();
                say(&format!("{answers} answers"));
            }
            "tree" => {
                let script = "trap '' TERM HUP INT; sleep 1000 & echo up; exec > /dev/null; sleep 1000";
                for _ in 0..2 {
                    let mut tool = Command::new("setsid");
                    tool.args(["sh", "-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
                    let tool = tool.spawn().unwrap();
                    let mut up = String::new();
                    io::BufReader::new(tool.stdout.unwrap()).read_line(&mut up).unwrap();
                }
                say("planted");
                match rest {
                    "done" => {}
                    "crash" => std::process::abort(),
                    "deaf" => std::thread::sleep(FOREVER),
                    _ => return self.prompt(id, "hang"),
                }
            }
            _ => {}
        }
        answer(id, json!({ "stopReason": stop }));
    }

    /// By a tool of its own.
    fn write(&self, path: &str) {
        if self.manner == "terse" {
            let diff = json!([{ "type": "diff", "path": path, "oldText": null, "newText": "written" }]);
            let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "w", "title": "Editing files", "kind": "edit",
                "status": "in_progress", "content": diff });
            update(call);
            let status = if fs::write(path, "written").is_ok() { "completed" } else { "failed" };
            update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "w", "status": status }));
            return say("tried");
        }
        let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "w", "title": format!("Write {path}"),
            "kind": "edit", "status": "pending", "locations": [{ "path": path }] });
        update(call);
        let done = |status, text: String| {
            let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
            update(
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": "w", "status": status, "content": content }),
            );
        };
        match fs::write(path, "written") {
            Ok(()) => done("completed", "ok".to_owned()),
            Err(error) => {
                let what = error.to_string().replace(" (os error 30)", "").to_lowercase();
                done("failed", format!("Error: EROFS: {what}, open '{path}'"));
            }
        }
        say("tried");
    }

    /// By its shell.
    fn sh(&self, script: &str) {
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "b", "title": script, "kind": "execute" }));
        let ran = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        if self.manner == "terse" {
            let piece = |data: &str| json!({ "terminal_output_delta": { "terminal_id": "b", "data": data } });
            let (first, rest) = said.split_at(said.floor_char_boundary(said.len() / 2));
            update(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "b", "_meta": piece(first) }));
            let mut end = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "failed" });
            end["_meta"] = piece(rest);
            update(end);
            return say("tried");
        }
        let raw = json!({ "exit_code": ran.status.code(), "formatted_output": said });
        update(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "completed", "rawOutput": raw }),
        );
        say(&said);
    }

    /// A question, as its text says it; what it was answered with is said.
    fn ask(&mut self, params: &str) {
        self.asked += 1;
        let params: Value = serde_json::from_str(params).unwrap();
        out(json!({ "id": self.asked, "method": "session/request_permission", "params": params }));
        let answer = self.read().unwrap_or_default();
        let said = if answer["result"].is_null() { &answer["error"]["code"] } else { &answer["result"]["outcome"] };
        say(&said.to_string());
    }
}
