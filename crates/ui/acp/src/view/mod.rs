//! What a client is shown of a session: a view of its log, and of what is said before the log has it.
//!
//! Agents never wait for a client. What they log is read from there at the pace at which the client reads; of what is not
//! logged only the newest is kept.

mod children;
mod replay;
mod speech;
mod tail;
#[cfg(test)]
mod tests;
mod tool;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent::{Live, Signal};
use agent_client_protocol::v1::schema::{ContentBlock, ContentChunk, MessageId, SessionUpdate};
use session::{Event, Session, SessionId, StepStart, ToolCalled, Typed};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tools::ToolProgress;

use children::Children;
use speech::{Speech, StepId, Voice};
use tail::Tail;

/// How many events are read at a time.
const BATCH: usize = 64;
/// How often a running call is shown anew.
const PACE: Duration = Duration::from_millis(100);

/// One session's view, fed by agents' tasks and emptied by one task that sends.
pub(crate) struct Feed {
    session: Session,
    root: PathBuf,
    state: Mutex<State>,
    wake: Notify,
    /// How many events of the log were shown.
    shown: watch::Sender<u64>,
}

struct State {
    /// The next event to show.
    cursor: u64,
    /// The step whose message was shown last.
    logged: Option<StepId>,
    speech: Speech,
    running: HashMap<Arc<str>, Running>,
    children: Children,
    /// When running calls may be shown again.
    paced: Instant,
    /// Whose prompts are shown: nobody's, where the client has just sent them.
    past: u64,
    settings: String,
}

/// A call without an answer.
struct Running {
    call: Option<Typed<ToolCalled>>,
    tail: Tail,
    /// Whether children work for it, whose progress stays when it is answered.
    delegates: bool,
}

/// What there is to send.
pub(crate) struct Batch {
    pub(crate) updates: Vec<SessionUpdate>,
    /// How many events are shown when these are sent.
    pub(crate) cursor: u64,
    /// Whether the session's settings may have changed.
    pub(crate) settings: bool,
}

impl Feed {
    /// A view from an event on. Prompts are shown of what was there before now.
    pub(crate) fn new(session: Session, root: PathBuf, cursor: u64) -> Arc<Self> {
        let past = session.len();
        let state = State {
            cursor,
            logged: None,
            speech: Speech::default(),
            running: HashMap::new(),
            children: Children::default(),
            paced: Instant::now(),
            past,
            settings: String::new(),
        };
        let (state, wake, shown) = (Mutex::new(state), Notify::new(), watch::Sender::new(cursor));
        Arc::new(Self { session, root, state, wake, shown })
    }

    /// An event was appended to the session's log.
    pub(crate) fn grew(&self) {
        self.wake.notify_one();
    }

    /// A model says something, or a child's does.
    pub(crate) fn heard(&self, live: &Live) {
        let (voice, text) = match &live.signal {
            Signal::Text(text) => (Voice::Text, text),
            Signal::Thought(thought) => (Voice::Thought, thought),
        };
        let mut state = self.lock();
        if live.session == self.session.id() {
            let Some(step) = self.session.latest::<StepStart>() else { return };
            state.speech.hear((step.turn, step.step), voice, text);
        } else if voice == Voice::Text {
            let State { children, running, .. } = &mut *state;
            children.heard(live.session, text, running);
        } else {
            return;
        }
        drop(state);
        self.wake.notify_one();
    }

    /// A running tool shows something.
    pub(crate) fn progressed(&self, progress: &ToolProgress) {
        if progress.session != self.session.id() {
            return;
        }
        self.lock().running.entry(progress.call_id.clone()).or_insert_with(Running::unknown).tail.push(&progress.text);
        self.wake.notify_one();
    }

    /// Something about a child, for whoever asked for it.
    pub(crate) fn child(&self, told: impl FnOnce(&mut Nested<'_>)) {
        let mut state = self.lock();
        let State { children, running, .. } = &mut *state;
        told(&mut Nested { top: self.session.id(), children, running });
        drop(state);
        self.wake.notify_one();
    }

    /// Waits until there is something to send.
    pub(crate) async fn next(&self) -> Batch {
        loop {
            let mut woken = std::pin::pin!(self.wake.notified());
            woken.as_mut().enable();
            let paced = match self.take() {
                Ok(batch) => return batch,
                Err(paced) => paced,
            };
            match paced {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, woken).await;
                }
                None => woken.await,
            }
        }
    }

    /// A batch was sent.
    pub(crate) fn sent(&self, batch: &Batch) {
        self.shown.send_if_modified(|shown| std::mem::replace(shown, batch.cursor) != batch.cursor);
    }

    /// Waits until so many events were shown.
    pub(crate) async fn shown(&self, events: u64) {
        // Never fails: the sender is ours.
        let _ = self.shown.subscribe().wait_for(|shown| *shown >= events).await;
    }

    /// What there is, or when there will be.
    fn take(&self) -> Result<Batch, Option<Instant>> {
        let log = self.session.snapshot();
        let mut state = self.lock();
        let (mut updates, mut settings, from) = (Vec::new(), false, state.cursor);
        for event in log.events_from(from).take(BATCH) {
            settings |= replay::sets(event);
            state.show(event, &self.root, &mut updates);
            state.cursor = event.seq() + 1;
        }
        let (cursor, now) = (state.cursor, Instant::now());
        let mut later = None;
        if cursor == log.len() {
            let logged = state.logged;
            let (step, said) = state.speech.take(logged);
            updates.extend(said.into_iter().map(|(voice, text)| chunk(step, voice, &text)));
            let due = now >= state.paced;
            for (call_id, running) in state.running.iter_mut().filter(|(_, running)| running.is_shown()) {
                if !due {
                    later = Some(());
                } else if let Some(text) = running.tail.shown() {
                    running.tail.dirty = false;
                    updates.push(SessionUpdate::ToolCallUpdate(tool::going_on(call_id, &text)));
                    later.get_or_insert(());
                }
            }
            if due && later.take().is_some() {
                state.paced = now + PACE;
            }
        }
        if updates.is_empty() && !settings && cursor == from {
            return Err(later.map(|()| state.paced));
        }
        Ok(Batch { updates, cursor, settings })
    }

    /// Whether these settings are not the ones that were told last.
    pub(crate) fn is_news(&self, settings: &str) -> bool {
        let mut state = self.lock();
        let is_news = state.settings != settings;
        state.settings = settings.to_owned();
        is_news
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// A call that shows something before its event was read.
    fn unknown() -> Self {
        Self { call: None, tail: Tail::default(), delegates: false }
    }

    /// Whether the client knows the call, and not yet what it shows.
    fn is_shown(&self) -> bool {
        self.tail.dirty && self.call.is_some()
    }
}

/// Where things about children go.
pub(crate) struct Nested<'a> {
    top: SessionId,
    children: &'a mut Children,
    running: &'a mut HashMap<Arc<str>, Running>,
}

impl Nested<'_> {
    pub(crate) fn published(&mut self, child: SessionId) {
        self.children.published(child);
    }

    pub(crate) fn started(&mut self, child: &subagent::ChildStarted) {
        self.children.started(self.top, child.into(), self.running);
    }

    pub(crate) fn progressed(&mut self, child: &subagent::ChildProgress) {
        self.children.progressed(child, self.running);
    }

    pub(crate) fn ended(&mut self, child: &subagent::ChildEnded) {
        self.children.ended(child, self.running);
    }

    pub(crate) fn event(&mut self, child: SessionId, event: &Event) {
        self.children.event(child, event, self.running);
    }
}

fn chunk((turn, step): StepId, voice: Voice, text: &str) -> SessionUpdate {
    let chunk = ContentChunk::new(ContentBlock::from(text.to_owned()));
    let chunk = chunk.message_id(MessageId::new(format!("{turn}.{step}")));
    match voice {
        Voice::Text => SessionUpdate::AgentMessageChunk(chunk),
        Voice::Thought => SessionUpdate::AgentThoughtChunk(chunk),
    }
}
