//! What a child does, as it tells it: kept for its result, told on as it comes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::v1::schema;
use llm::Content;
use sandbox::{Denial, Mode, Operation, one_line};
use schema::{ContentBlock, SessionNotification, SessionUpdate, ToolCallContent, ToolCallStatus, ToolKind};
use serde_json::Value;
use session::SessionId;
use subagent::{CallState, ChildDenial, Denials, Doing};
use tokio::sync::mpsc;

use crate::Permission;
use crate::answers::{Answer, answer, cancelled};
use crate::calls::{Calls, short};
use crate::transcript::Messages;

/// The longest title of a call, in characters.
const TITLE: usize = 200;

/// The longest piece of a message that is told at once, in bytes.
const PIECE: usize = 4 * 1024;

/// How much of what a tool of the child said is looked at, in bytes.
pub(crate) const SAID: usize = 16 * 1024;

/// What is told on.
#[derive(Debug)]
pub(crate) enum Told {
    /// To whoever watches.
    Doing(Doing),
    /// To whoever can show what was denied: what a tool said at its end.
    Look(String),
    /// To the same: what was to be changed by a call that failed, and said nothing of why.
    Failed(Vec<PathBuf>),
}

/// Shared between the protocol, which must not wait, and whoever tells it on.
#[derive(Clone)]
pub(crate) struct Activity {
    state: Arc<Mutex<State>>,
    tell: mpsc::Sender<Told>,
    permission: Permission,
    /// The child's id in denials: the harness's own, and never the remote one.
    child: SessionId,
    mode: Mode,
    looks: bool,
}

#[derive(Default)]
struct State {
    /// The remote session, from its opening on.
    session: Option<Arc<str>>,
    prompted: bool,
    stopping: bool,
    messages: Messages,
    calls: Calls,
    denials: Denials,
}

/// A question about no session of ours.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OtherSession;

impl Activity {
    pub(crate) fn new(
        tell: mpsc::Sender<Told>,
        permission: Permission,
        child: SessionId,
        mode: Mode,
        looks: bool,
    ) -> Self {
        Self { state: Arc::default(), tell, permission, child, mode, looks }
    }

    /// The remote session is open, and its prompt is sent next.
    pub(crate) fn prompts(&self, session: Arc<str>) {
        let mut state = self.lock();
        state.session = Some(session);
        state.prompted = true;
    }

    /// Questions are answered as cancelled from now on.
    pub(crate) fn stops(&self) {
        self.lock().stopping = true;
    }

    /// Something happened in the child's session.
    pub(crate) fn update(&self, params: Value) {
        // What is not understood is a later version's.
        let Ok(SessionNotification { session_id, update, .. }) = serde_json::from_value(params) else { return };
        let mut state = self.lock();
        if !state.prompted || state.session.as_ref() != Some(&session_id.0) {
            return;
        }
        let mut tell = Vec::new();
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => {
                let ContentBlock::Text(said) = chunk.content else { return };
                state.messages.say(&said.text, chunk.message_id.as_ref().map(|id| &*id.0));
                tell.extend(pieces(&said.text).map(|piece| Told::Doing(Doing::Says(piece.into()))));
            }
            SessionUpdate::ToolCall(call) => {
                state.messages.act();
                let id = &*call.tool_call_id.0;
                let title = state.calls.title(id, Some(&call.title));
                tell.push(calls(id, title, call.status));
                state.calls.note(id, Some(call.kind), &call.locations, &call.content, call.meta.as_ref());
                tell.extend(self.look(&mut state, id, call.status, &call.content, call.raw_output.as_ref()));
            }
            SessionUpdate::ToolCallUpdate(update) => {
                let fields = update.fields;
                let (id, content) = (&*update.tool_call_id.0, fields.content.unwrap_or_default());
                let title = state.calls.title(id, fields.title.as_deref());
                let locations = fields.locations.unwrap_or_default();
                state.calls.note(id, fields.kind, &locations, &content, update.meta.as_ref());
                if let Some(status) = fields.status {
                    tell.push(calls(id, title, status));
                    tell.extend(self.look(&mut state, id, status, &content, fields.raw_output.as_ref()));
                }
            }
            // Thoughts, plans and the like are the child's own affair.
            _ => {}
        }
        drop(state);
        tell.into_iter().for_each(|told| self.tell(told));
    }

    /// The child asks whether it may.
    ///
    /// # Errors
    ///
    /// It asks for a session that is not its own.
    pub(crate) fn asked(&self, params: &Value) -> Result<Answer, OtherSession> {
        let mut state = self.lock();
        let of = &params["sessionId"];
        if of.as_str().is_some_and(|of| state.session.as_deref() != Some(of)) || !(of.is_string() || of.is_null()) {
            return Err(OtherSession);
        }
        if state.stopping {
            return Ok(cancelled());
        }
        let answer = answer(self.permission, &params["options"]);
        if answer.allowed {
            return Ok(answer);
        }
        let call = &params["toolCall"];
        let title = state.calls.title(call["toolCallId"].as_str().unwrap_or_default(), call["title"].as_str());
        drop(state);
        let kind = serde_json::from_value(call["kind"].clone()).unwrap_or_default();
        let path = call["locations"][0]["path"].as_str().filter(|path| path.starts_with('/'));
        let target = path.map_or_else(|| title.to_string(), |path| brief(path).to_string());
        self.deny(Denial::new(operation(kind), target, self.mode));
        Ok(answer)
    }

    /// Something was denied to the child.
    pub(crate) fn deny(&self, denial: Denial) {
        let denial = ChildDenial::in_session(self.child, denial);
        self.lock().denials.push(denial.clone());
        self.tell(Told::Doing(Doing::Denied(denial)));
    }

    /// What the child said last, and all that was denied to it.
    pub(crate) fn outcome(&self) -> (Vec<Content>, Denials) {
        let mut state = self.lock();
        (state.messages.output(), state.denials.clone())
    }

    /// What to look at, where a tool that is done may have been denied something.
    fn look(
        &self,
        state: &mut State,
        id: &str,
        status: ToolCallStatus,
        content: &[ToolCallContent],
        raw: Option<&Value>,
    ) -> Option<Told> {
        if !matches!(status, ToolCallStatus::Completed | ToolCallStatus::Failed) {
            return None;
        }
        let done = state.calls.done(id);
        if !self.looks {
            return None;
        }
        let mut said = String::new();
        for content in content {
            if let ToolCallContent::Content(content) = content
                && let ContentBlock::Text(text) = &content.content
            {
                add(&mut said, &text.text);
            }
        }
        raw.into_iter().for_each(|raw| strings(raw, &mut said));
        add(&mut said, &done.output);
        let small = said.to_ascii_lowercase();
        let hints = ["read-only file", "permission denied", "not permitted", "resource busy"];
        if hints.iter().any(|hint| small.contains(hint)) {
            return Some(Told::Look(said));
        }
        (status == ToolCallStatus::Failed && !done.changes.is_empty()).then_some(Told::Failed(done.changes))
    }

    /// Whoever tells it on may be slow, and then is told less: nothing here waits, or grows.
    fn tell(&self, told: Told) {
        let _full = self.tell.try_send(told);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn calls(id: &str, title: Arc<str>, status: ToolCallStatus) -> Told {
    let state = match status {
        ToolCallStatus::InProgress => CallState::Running,
        ToolCallStatus::Completed => CallState::Done,
        ToolCallStatus::Failed => CallState::Failed,
        _ => CallState::Pending,
    };
    Told::Doing(Doing::Calls { call: short(id).into(), title, state })
}

fn operation(kind: ToolKind) -> Operation {
    match kind {
        ToolKind::Read => Operation::Read,
        ToolKind::Search => Operation::Search,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Operation::Write,
        _ => Operation::Execute,
    }
}

pub(crate) fn brief(text: &str) -> Arc<str> {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = &line[..line.floor_char_boundary(4 * TITLE)];
    let line = one_line(line).to_string();
    match line.char_indices().nth(TITLE) {
        Some((cut, _)) => format!("{}…", &line[..cut]).into(),
        None => line.into(),
    }
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Every text in a value, wherever it is in it.
fn strings(value: &Value, said: &mut String) {
    match value {
        Value::String(text) => add(said, text),
        Value::Array(values) => values.iter().for_each(|value| strings(value, said)),
        Value::Object(values) => values.values().for_each(|value| strings(value, said)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The end of a text, within what is looked at.
fn add(said: &mut String, text: &str) {
    let from = text.ceil_char_boundary(text.len().saturating_sub(SAID));
    if said.len() < 4 * SAID {
        said.push_str(&text[from..]);
        said.push('\n');
    }
}
