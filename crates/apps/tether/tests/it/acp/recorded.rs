//! What a client says and is told, written down as it goes.

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use super::show::joined;
use crate::commands::until;
use crate::run::world::World;

/// How much more memory there may be, whatever a child writes.
const MOST_GROWTH: u64 = 64 * 1024 * 1024;

/// A connection with a client that does one thing at a time.
pub(crate) struct Recorded<'a> {
    world: &'a World,
    client: Client,
    lines: Vec<String>,
}

impl<'a> Recorded<'a> {
    pub(crate) fn start(world: &'a World, args: &[&str]) -> Self {
        Self { world, client: Client::start(world, args), lines: Vec::new() }
    }

    /// Opens a session. What can be set in it is not told.
    #[track_caller]
    pub(crate) fn open(&mut self) -> String {
        self.lines.push(format!("> session/new {}", json!({"cwd": self.world.root(), "mcpServers": []})));
        let session = self.client.new_session(self.world);
        self.lines.push(format!("< {}", json!({"sessionId": session})));
        session
    }

    /// Works on a prompt to its end, which the client asks for as soon as it is shown `cancel_at`.
    #[track_caller]
    pub(crate) fn prompt(&mut self, session: &str, text: &str, cancel_at: Option<&str>) {
        let before = self.client.memory("VmRSS:");
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.lines.push(format!("> session/prompt {params}"));
        let prompt = self.client.send("session/prompt", params);
        if let Some(part) = cancel_at {
            let seen = self.client.update_that(session, |update| update.to_string().contains(part));
            self.told(session);
            self.lines.push(format!("< {seen}"));
            until("there is something to end", || !self.children().is_empty());
            self.client.cancel(session);
            self.lines.push(format!("> session/cancel {}", json!({"sessionId": session})));
            // However long that takes, others are answered.
            self.client.call("session/list", json!({})).unwrap();
        }
        let answer = self.client.answer(prompt);
        assert_eq!(self.children(), [0; 0], "nothing of a child is left when its parent's turn has ended");
        let grown = self.client.memory("VmHWM:").saturating_sub(before);
        assert!(grown < MOST_GROWTH, "{grown} bytes");
        self.told(session);
        self.lines.push(match answer {
            Ok(result) => format!("< {result}"),
            Err((code, message)) => format!("< error {code}: {message}"),
        });
    }

    /// Ends the connection: everything that was said.
    #[track_caller]
    pub(crate) fn end(self) -> Vec<String> {
        self.client.leave();
        self.lines
    }

    fn told(&mut self, session: &str) {
        let updates = self.client.updates(session);
        self.lines.extend(joined(&updates).iter().map(|update: &Value| format!("< {update}")));
    }

    /// Every process that has this world's home, but for the one that is talked to.
    fn children(&self) -> Vec<u32> {
        let home = format!("HOME={}", self.world.path("user").display());
        let has_it = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        };
        let entries = fs::read_dir("/proc").unwrap().map_while(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != self.client.pid()).filter(has_it).collect()
    }
}
