//! What the agents are doing, for people: an indented tree on standard error. On a terminal each agent also has a line
//! that moves; elsewhere there are plain lines only.

use std::collections::HashMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::{Live, Signal};
use sandbox::{Mode, one_line};
use session::{Event, Header, SessionId, ToolCalled, ToolReturned};
use subagent::{CallState, ChildEnded, ChildProgress, ChildStarted, Descriptor, Doing};
use tools::ToolProgress;
use user_approval::{ApprovalAsked, ApprovalDecided};

use super::moving::Moving;
use super::watch::{Summary, View, Whose};

/// The longest text that is shown of anything, in characters.
const SHOWN: usize = 100;

pub(crate) struct Progress(Mutex<State>);

struct State {
    /// Calls that were asked and have not returned.
    calls: HashMap<(SessionId, Arc<str>), String>,
    /// The moving lines, on a terminal.
    moving: Option<Moving>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let moving = io::stderr().is_terminal().then(Moving::new);
        Self(Mutex::new(State { calls: HashMap::new(), moving }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn say(&mut self, line: &str) {
        match &mut self.moving {
            Some(moving) => moving.say(line),
            // Whoever is gone cannot be shown anything.
            None => drop(writeln!(anstream::stderr(), "{line}")),
        }
    }

    fn doing(&mut self, whose: &Whose, doing: &str) {
        if let Some(moving) = &mut self.moving {
            let label = whose.label.as_deref().map_or_else(String::new, brief);
            moving.doing(whose.session, &indent(whose.depth), &label, doing);
        }
    }
}

impl View for Progress {
    fn opened(&self, header: &Header, model: &str, mode: Mode) {
        let line = format!("session {} · {model} · {mode} · {}", header.id(), one_line(header.cwd()));
        self.lock().say(&line);
    }

    fn event(&self, whose: &Whose, event: &Event) {
        let mut state = self.lock();
        if let Some(descriptor) = event.get::<Descriptor>() {
            // Its announcement may come after the first things that it does.
            state.say(&begun(whose.depth, descriptor.label.as_deref(), &descriptor.provider));
            state.doing(whose, "starting");
        } else if let Some(call) = event.get::<ToolCalled>() {
            let told = told(call);
            state.doing(whose, &told);
            state.calls.insert((whose.session, call.call_id.clone()), told);
        } else if let Some(result) = event.get::<ToolReturned>() {
            let told = state.calls.remove(&(whose.session, result.call_id.clone())).unwrap_or_default();
            let mark = if result.is_error { "✗" } else { "✓" };
            let why = if result.is_error { format!(" — {}", first_line(result)) } else { String::new() };
            let label = whose.label.as_ref().map_or_else(String::new, |label| format!("{}: ", brief(label)));
            state.say(&format!("{}{mark} {label}{told}{why}", indent(whose.depth)));
            state.doing(whose, "thinking");
        } else if let Some(moving) = &mut state.moving {
            if event.get::<ApprovalAsked>().is_some() {
                moving.hold();
            } else if event.get::<ApprovalDecided>().is_some() {
                moving.go_on();
            }
        }
    }

    fn live(&self, live: &Live) {
        let mut state = self.lock();
        if let (Some(moving), Signal::Text(more) | Signal::Thought(more)) = (&mut state.moving, &live.signal) {
            moving.saying(live.session, more);
        }
    }

    fn tool_progress(&self, progress: &ToolProgress) {
        if let Some(moving) = &mut self.lock().moving {
            moving.saying(progress.session, &progress.text);
        }
    }

    fn child_started(&self, child: &ChildStarted) {
        if child.child.is_none() {
            self.lock().say(&begun(1, child.label.as_deref(), &child.provider));
        }
    }

    fn child_progress(&self, child: &ChildProgress) {
        let line = match &child.doing {
            Doing::Calls { title, state: CallState::Running, .. } => format!("· {}", brief(title)),
            Doing::Calls { title, state: CallState::Failed, .. } => format!("✗ {}", brief(title)),
            Doing::Denied(denial) => format!("✗ denied: {} {}", denial.operation, brief(&denial.target)),
            Doing::Held(how) => format!("· {}", brief(how)),
            Doing::Says(_) | Doing::Calls { state: CallState::Pending | CallState::Done, .. } => return,
        };
        self.lock().say(&format!("{}{}: {line}", indent(2), brief(&child.provider)));
    }

    fn child_ended(&self, child: &ChildEnded) {
        if let (Some(session), Some(moving)) = (child.child, &mut self.lock().moving) {
            moving.done(session);
        }
    }

    fn finished(&self, summary: &Summary) -> io::Result<()> {
        let mut state = self.lock();
        if let Some(moving) = &mut state.moving {
            moving.finish();
        }
        let denied = match summary.denials.len() {
            0 => String::new(),
            1 => ", 1 denial".to_owned(),
            n => format!(", {n} denials"),
        };
        let tokens = match summary.usage.total() {
            1 => "1 token".to_owned(),
            n => format!("{n} tokens"),
        };
        state.say(&format!("{}: {tokens}{denied}", summary.stop_reason.as_str()));
        Ok(())
    }
}

fn begun(depth: u32, label: Option<&str>, provider: &str) -> String {
    format!("{}▸ {} ({provider})", indent(depth), label.map_or_else(|| provider.to_owned(), brief))
}

fn indent(depth: u32) -> String {
    "  ".repeat(depth.min(20) as usize)
}

/// A call in a few words: the tool and its first telling argument.
fn told(call: &ToolCalled) -> String {
    let arguments = serde_json::from_str::<serde_json::Value>(&call.arguments).unwrap_or_default();
    let telling = ["path", "command", "description", "pattern", "prompt"];
    let argument = telling.iter().find_map(|name| arguments.get(name)?.as_str());
    format!("{} {}", brief(&call.name), argument.map_or_else(String::new, brief)).trim_end().to_owned()
}

fn first_line(result: &ToolReturned) -> String {
    let text: String = result.content.iter().filter_map(llm::Content::as_text).collect();
    brief(text.lines().next().unwrap_or_default())
}

fn brief(text: &str) -> String {
    let mut line = one_line(text).to_string();
    if let Some((cut, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(cut);
        line.push('…');
    }
    line
}
