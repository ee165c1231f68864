use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::run::process::{DEADLINE, signal_child, watch};
use crate::run::world::World;

/// Where to write down every frame, for checks by other programs: a directory.
const RECORD: &str = "TETHER_TEST_FRAMES";

/// What only a turn sends.
const OF_A_TURN: [&str; 4] = ["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];

/// A client of a process of its own. It reads no more than is asked for.
pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    frames: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    sent: u64,
    /// What was read and not asked for yet.
    waiting: VecDeque<Value>,
    /// The sessions of prompts that have no answer yet.
    prompts: HashMap<u64, String>,
    /// The calls that were told of, behind their session's id.
    calls: HashSet<String>,
    /// Sessions whose turn is over.
    quiet: HashSet<String>,
    record: Option<File>,
    _watchdog: Sender<()>,
}

/// An answer: what was asked for, or a code and a message.
pub(super) type Answer = Result<Value, (i64, String)>;

impl Client {
    /// Starts the program and introduces itself.
    pub(super) fn start(world: &World, args: &[&str]) -> Self {
        let mut client = Self::spawn(world.command(&[&["acp"], args].concat()));
        client.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}})).unwrap();
        client
    }

    /// Starts a program.
    pub(super) fn spawn(mut command: std::process::Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // One line ahead, so that what nobody asks for stays in the pipe.
        let (sender, frames) = sync_channel(1);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut stderr = child.stderr.take().unwrap();
        let stderr = thread::spawn(move || {
            let mut all = String::new();
            stderr.read_to_string(&mut all).unwrap();
            all
        });
        let record = std::env::var_os(RECORD).map(|dir| {
            let path = Path::new(&dir).join(format!("{}.jsonl", child.id()));
            OpenOptions::new().create(true).append(true).open(path).unwrap()
        });
        let _watchdog = watch(&child);
        Self {
            stdin: child.stdin.take(),
            child,
            frames,
            stderr: Some(stderr),
            sent: 0,
            waiting: VecDeque::new(),
            prompts: HashMap::new(),
            calls: HashSet::new(),
            quiet: HashSet::new(),
            record,
            _watchdog,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are.
    pub(super) fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.stdin.as_mut().unwrap().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends from elsewhere, while this reads.
    pub(super) fn hand_over(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    fn frame(&mut self, frame: &Value) {
        self.write_down(">", frame);
        self.raw(format!("{frame}\n"));
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.frame(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and goes on.
    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.sent += 1;
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if matches!(method, "session/prompt" | "session/load") {
            self.quiet.remove(&session);
        }
        if method == "session/prompt" {
            self.prompts.insert(self.sent, session);
        }
        self.frame(&json!({"jsonrpc": "2.0", "id": self.sent, "method": method, "params": params}));
        self.sent
    }

    /// Answers a request of the program's.
    pub(super) fn reply(&mut self, request: &Value, result: Value) {
        self.frame(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    }

    #[track_caller]
    pub(super) fn call(&mut self, method: &str, params: Value) -> Answer {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(super) fn answer(&mut self, id: u64) -> Answer {
        self.answer_to(&id.into())
    }

    #[track_caller]
    pub(super) fn answer_to(&mut self, id: &Value) -> Answer {
        result(self.wait(|frame| frame["id"] == *id && frame.get("method").is_none()))
    }

    /// Waits for an answer that nobody could be named in.
    #[track_caller]
    pub(super) fn nobodys_answer(&mut self) -> Answer {
        result(self.wait(|frame| frame["id"].is_null() && frame.get("method").is_none()))
    }

    /// Waits for a request of the program's, or for a notification that is no update.
    #[track_caller]
    pub(super) fn asked(&mut self, method: &str) -> Value {
        self.wait(|frame| frame["method"] == method)
    }

    /// Waits for an update of this kind.
    #[track_caller]
    pub(super) fn update(&mut self, session: &str, kind: &str) -> Value {
        self.update_that(session, |update| update["sessionUpdate"] == kind)
    }

    #[track_caller]
    pub(super) fn update_that(&mut self, session: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut frame = self.wait(|frame| frame["params"]["sessionId"] == session && is(&frame["params"]["update"]));
        frame["params"]["update"].take()
    }

    /// The updates about a session that were read so far, and not asked for.
    pub(super) fn updates(&mut self, session: &str) -> Vec<Value> {
        let is_own = |frame: &Value| frame["method"] == "session/update" && frame["params"]["sessionId"] == session;
        let (own, others): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_own);
        self.waiting = others;
        own.into_iter().map(|mut frame| frame["params"]["update"].take()).collect()
    }

    #[track_caller]
    fn wait(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&is) {
            return self.waiting.remove(at).unwrap();
        }
        loop {
            let Some(frame) = self.next() else { panic!("it ended; not asked for: {:#?}", self.waiting) };
            if is(&frame) {
                return frame;
            }
            self.waiting.push_back(frame);
        }
    }

    /// The next frame, unless the program has ended.
    #[track_caller]
    fn next(&mut self) -> Option<Value> {
        let line = match self.frames.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing more after {:#?}", self.waiting),
        };
        let frame: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
        self.write_down("<", &frame);
        self.check_order(&frame);
        Some(frame)
    }

    /// Everything about a turn comes before its answer, and a call before everything about it.
    #[track_caller]
    fn check_order(&mut self, frame: &Value) {
        let params = &frame["params"];
        if let Some(session) = params["sessionId"].as_str() {
            let kind = params["update"]["sessionUpdate"].as_str().unwrap_or_default();
            let asks = frame["method"] == "session/request_permission";
            let is_quiet = self.quiet.contains(session);
            assert!(!(is_quiet && (asks || OF_A_TURN.contains(&kind))), "behind the answer: {frame}");
            let call = if asks { &params["toolCall"]["toolCallId"] } else { &params["update"]["toolCallId"] };
            if kind == "tool_call" {
                self.calls.insert(format!("{session} {call}"));
            }
            assert!(call.is_null() || self.calls.contains(&format!("{session} {call}")), "before its call: {frame}");
        } else if let Some(session) = frame["id"].as_u64().and_then(|id| self.prompts.remove(&id)) {
            // One that was refused is no turn.
            if frame["error"]["code"] != -32600 {
                self.quiet.insert(session);
            }
        }
    }

    fn write_down(&mut self, dir: &str, frame: &Value) {
        if let Some(record) = &mut self.record {
            writeln!(record, "{}", json!({"dir": dir, "m": frame})).unwrap();
        }
    }

    /// Opens a session in the world's workspace.
    #[track_caller]
    pub(super) fn new_session(&mut self, world: &World) -> String {
        let opened = self.call("session/new", json!({"cwd": world.root(), "mcpServers": []})).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and goes on.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    /// Works on a prompt to its end: how it ended.
    #[track_caller]
    pub(super) fn stopped(&mut self, prompt: u64) -> String {
        self.answer(prompt).unwrap()["stopReason"].as_str().unwrap().to_owned()
    }

    pub(super) fn cancel(&mut self, session: &str) {
        self.notify("session/cancel", json!({"sessionId": session}));
    }

    pub(super) fn signal(&self, signal: Signal) {
        signal_child(&self.child, signal);
    }

    /// What the system counts of the process's memory, in bytes.
    pub(super) fn memory(&self, count: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(count)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Listens no longer, although the program may speak, and waits for the end: the exit status.
    pub(super) fn stop_listening(mut self) -> Option<i32> {
        let (_, nothing) = sync_channel(1);
        self.frames = nothing;
        // The reader goes with the first line that nobody takes, and the program is told with the next.
        let ask = b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"x\"}\n";
        while self.child.try_wait().unwrap().is_none() && self.stdin.as_mut().unwrap().write_all(ask).is_ok() {
            thread::yield_now();
        }
        self.child.wait().unwrap().code()
    }

    /// Closes the connection, reads what is still sent, and waits for the end.
    #[track_caller]
    pub(super) fn leave(mut self) {
        drop(self.stdin.take());
        assert_eq!(self.finish(), (0, String::new()));
    }

    /// Waits for the end: the exit status, and what was complained of.
    #[track_caller]
    pub(super) fn finish(&mut self) -> (i32, String) {
        while let Some(frame) = self.next() {
            self.waiting.push_back(frame);
        }
        let stderr = self.stderr.take().unwrap().join().unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (self.child.wait().unwrap().code().expect(&stderr), stderr)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn result(mut frame: Value) -> Answer {
    match frame.get("error") {
        Some(error) => Err((error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())),
        None => Ok(frame["result"].take()),
    }
}
