//! What stands in: a tool that waits, a model by the line, an answerer that counts, a store that can be made to fail.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use context::{Boxed, Ctx};
use llm::{Chunk, LlmAdapter, Reply, Role, ToolSchema};
use session::{Backing, FlushError, Session, SessionId, Sessions, Snapshot, Vocabulary};
use session_store::{
    CreateError, ListError, NotFound, OpenError, Opened, ReadError, Reading, RemoveError, Row, SessionStore, Summary,
};
use tokio::sync::watch;
use tools::{Call, Concurrency, Tool, ToolOutput};
use user_approval::{Answer, Answerer, Question};

/// A schema without arguments to speak of.
pub(crate) fn schema(name: &str) -> ToolSchema {
    let input_schema = Arc::new(serde_json::json!({"type": "object"}));
    ToolSchema { name: name.into(), description: "For tests.".into(), input_schema }
}

/// The tool `gate`: a call waits at the gate that it names, until that is opened.
pub(crate) struct Gate {
    schema: ToolSchema,
    seen: watch::Sender<Seen>,
}

#[derive(Default)]
struct Seen {
    arrived: Vec<String>,
    open: HashSet<String>,
    waiting: usize,
    most: usize,
}

impl Gate {
    pub(crate) fn in_app(ctx: &Ctx) -> Arc<Self> {
        let gate = Arc::new(Self { schema: schema("gate"), seen: watch::Sender::new(Seen::default()) });
        ctx.register::<dyn Tool>("gate", gate.clone()).unwrap();
        gate
    }

    pub(crate) fn open(&self, name: &str) {
        self.seen.send_modify(|seen| seen.open.extend([name.to_owned()]));
    }

    /// Waits until a call waits, or waited, at this gate.
    pub(crate) async fn arrived(&self, name: &str) {
        self.seen.subscribe().wait_for(|seen| seen.arrived.iter().any(|at| at == name)).await.unwrap();
    }

    /// Waits until so many calls have arrived.
    pub(crate) async fn arrivals(&self, count: usize) {
        self.seen.subscribe().wait_for(|seen| seen.arrived.len() >= count).await.unwrap();
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.seen.borrow().arrived.clone()
    }

    /// The most calls that waited at the same time.
    pub(crate) fn most(&self) -> usize {
        self.seen.borrow().most
    }
}

#[async_trait]
impl Tool for Gate {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments).unwrap();
        let name = arguments["name"].as_str().unwrap().to_owned();
        self.seen.send_modify(|seen| {
            seen.arrived.push(name.clone());
            seen.waiting += 1;
            seen.most = seen.most.max(seen.waiting);
        });
        let mut opened = self.seen.subscribe();
        let passed =
            call.cancelled.run_until_cancelled(opened.wait_for(|seen| seen.open.contains(&name))).await.is_some();
        self.seen.send_modify(|seen| seen.waiting -= 1);
        if passed { ToolOutput::text("passed") } else { ToolOutput::error(tools::code::CANCELLED, "turned back") }
    }
}

/// A model that says its N-th line after N replies, in every session.
pub(crate) struct Lines(pub(crate) Vec<Vec<Chunk>>);

impl LlmAdapter for Lines {
    fn reply(&self, request: llm::Request) -> Reply {
        let replies = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        llm::replied(self.0[replies].clone())
    }
}

/// Allows everything, for everybody, and counts.
#[derive(Default)]
pub(crate) struct Yes(AtomicUsize);

impl Yes {
    pub(crate) fn asked(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Answerer for Yes {
    fn owns(&self, _: SessionId) -> bool {
        true
    }

    async fn answer(&self, _: &Question) -> Option<Answer> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Some(Answer::AllowOnce)
    }
}

/// A store that notes what it is asked, takes some polls for it, and fails where it is told to.
#[derive(Clone)]
pub(crate) struct Tape(Arc<Inner>);

struct Inner {
    notes: Mutex<Vec<Note>>,
    fails: Box<dyn Fn(&Note) -> bool + Send + Sync>,
    polls: usize,
}

/// What a store was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Create(SessionId),
    /// How long the log was that is durable now, and whether it has a parent.
    Flush {
        id: SessionId,
        len: u64,
        child: bool,
    },
    Close(SessionId),
    Discard(SessionId),
    /// Something that was not asked of the store, to see what came before.
    Else(&'static str),
}

impl Tape {
    /// Every answer takes `polls` polls; what `fails` says fails.
    pub(crate) fn new(polls: usize, fails: impl Fn(&Note) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { notes: Mutex::default(), fails: Box::new(fails), polls }))
    }

    pub(crate) fn note(&self, note: Note) {
        self.0.notes.lock().unwrap().push(note);
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.0.notes.lock().unwrap().clone()
    }

    /// What is leased or kept of sessions that were not let go of properly, by the last thing that was asked for each.
    pub(crate) fn held(&self) -> Vec<SessionId> {
        let mut held = Vec::new();
        for note in self.notes() {
            match note {
                Note::Create(id) => held.push(id),
                Note::Close(id) | Note::Discard(id) => held.retain(|of| *of != id),
                Note::Flush { .. } | Note::Else(_) => {}
            }
        }
        held
    }

    /// Notes it once it is done.
    async fn does(self, note: Note) -> Result<(), FlushError> {
        for _ in 0..self.0.polls {
            tokio::task::yield_now().await;
        }
        if (self.0.fails)(&note) {
            return Err(FlushError { message: "the disk said no".into(), full: false });
        }
        self.note(note);
        Ok(())
    }
}

struct Taped(Tape, SessionId);

impl Backing for Taped {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        let (id, len, child) = (self.1, log.len(), log.header().lineage().is_some());
        Box::pin(self.0.clone().does(Note::Flush { id, len, child }))
    }

    fn close(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        Box::pin(self.0.clone().does(Note::Close(self.1)))
    }

    fn discard(&self) -> Boxed<'static, ()> {
        let done = self.0.clone().does(Note::Discard(self.1));
        Box::pin(async { done.await.unwrap() })
    }
}

#[async_trait]
impl SessionStore for Tape {
    async fn create(&self, session: &Session) -> Result<(), CreateError> {
        let place = self.place(session.id());
        let created = self.clone().does(Note::Create(session.id())).await;
        created.map_err(|_| CreateError::Exists { place })?;
        Ok(session.attach(Arc::new(Taped(self.clone(), session.id())))?)
    }

    async fn open(&self, _: &Arc<Sessions>, _: SessionId) -> Result<Opened, OpenError> {
        unreachable!("no test opens what is taped")
    }

    async fn read(&self, _: &Arc<Vocabulary>, _: SessionId) -> Result<Reading, ReadError> {
        unreachable!("no test reads what is taped")
    }

    async fn summary(&self, _: &Arc<Vocabulary>, id: SessionId) -> Result<Summary, ReadError> {
        Err(NotFound { id, place: self.place(id) }.into())
    }

    async fn list(&self, _: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: SessionId) -> Result<(), RemoveError> {
        unreachable!("nobody here removes anything")
    }

    fn place(&self, id: SessionId) -> String {
        format!("tape:{id}")
    }
}
