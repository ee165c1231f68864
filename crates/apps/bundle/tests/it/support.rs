//! The spine with a model that answers at once, on a disk where a test wants one.

use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentRef, Agents, Profile, Spec};
use async_trait::async_trait;
use context::{Around, Chain, Next, Scope};
use llm::{Chunk, Finish, LlmAdapter, Reply, Request, replied};
use session::{Session, Sessions};
use session_jsonl::JsonlStore;
use session_store::SessionStore;
use tempfile::TempDir;
use tokio::sync::Notify;

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("done before the deadline")
}

/// Lets everybody else run until it is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

pub(crate) struct App {
    pub(crate) scope: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) agents: Arc<Agents>,
}

impl App {
    /// Keeps nothing.
    pub(crate) async fn new() -> Self {
        let scope = Scope::root("app");
        scope.register::<dyn LlmAdapter>("polite", Arc::new(Polite)).unwrap();
        bundle::spine(bundle::Policies::default()).start(&scope).await.unwrap();
        let (sessions, agents) = (scope.get().unwrap(), scope.get().unwrap());
        Self { scope, sessions, agents }
    }

    /// Keeps its sessions in a directory.
    pub(crate) async fn on_disk() -> (Self, Disk) {
        let (app, disk) = (Self::new().await, Disk::new());
        app.scope.provide::<dyn SessionStore>(disk.store.clone()).unwrap();
        (app, disk)
    }

    pub(crate) fn session(&self) -> Session {
        self.sessions.create("/home/me/project")
    }

    pub(crate) async fn agent(&self) -> Agent {
        self.agent_of(self.session(), "polite/model").await
    }

    /// An agent of a model, which is registered as its provider.
    pub(crate) async fn agent_with(&self, model: impl LlmAdapter + 'static) -> Agent {
        self.scope.register::<dyn LlmAdapter>("own", Arc::new(model)).unwrap();
        self.agent_of(self.session(), "own/model").await
    }

    pub(crate) async fn agent_of(&self, session: Session, route: &str) -> Agent {
        self.agents.create(&self.scope, spec(&session, route)).await.unwrap()
    }

    pub(crate) async fn close(self) {
        self.scope.close().await.unwrap();
    }
}

pub(crate) fn spec(session: &Session, route: &str) -> Spec {
    Spec::new(session.clone(), Profile::of(route.parse().unwrap()))
}

pub(crate) struct Disk {
    pub(crate) store: Arc<JsonlStore>,
    _dir: TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { store: Arc::new(JsonlStore::new(dir.path())), _dir: dir }
    }
}

/// Says hello to everything.
struct Polite;

impl LlmAdapter for Polite {
    fn reply(&self, _: Request) -> Reply {
        replied([Chunk::Text("hello".into()), Chunk::End(Finish::Stop)])
    }
}

/// A layer that never lets go of what comes to it.
#[derive(Clone, Default)]
pub(crate) struct Held {
    /// Told when something has come.
    pub(crate) arrived: Arc<Notify>,
}

#[async_trait]
impl<C> Around<C> for Held
where
    C: Chain,
    C::Input: Send,
    C::Output: Send,
{
    async fn around(&self, _: C::Input, _: Next<'_, C>) -> C::Output {
        self.arrived.notify_one();
        std::future::pending().await
    }
}

/// The messages of the conversation, as text.
pub(crate) fn conversation(session: &Session) -> Vec<String> {
    session.messages().unwrap().iter().map(|message| message.text()).collect()
}

/// The messages that wait, as text.
pub(crate) fn inbox(session: &Session) -> Vec<String> {
    session.pending().iter().map(|waiting| waiting.message.text()).collect()
}

/// Whether a message has been kept, be it said already or not.
pub(crate) fn knows(session: &Session, text: &str) -> bool {
    conversation(session).iter().chain(&inbox(session)).any(|one| one == text)
}

/// The session of an agent that is gone, from its log.
pub(crate) async fn reopened(disk: &Disk, agent: &AgentRef) -> Session {
    disk.store.open(&Sessions::new(), agent.id()).await.expect("its log is there, and free").session
}
