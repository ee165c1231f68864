use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use context::{Plugins, Scope as Owner};
use policy_audit::Logs;
use sandbox::Mode;
use sandbox_policy::SandboxPolicyPlugin;
use session::{Delegation, Header, Seed, Session, SessionId, Sessions, TurnEnd, TurnReason, TurnStart, Vocabulary};
use session_store::{ListError, NotFound, ReadError, Reading, Row, Summary};
use subagent::{ChildMode, DESCRIPTOR_VERSION, Descriptor};
use user_approval::{Policy, UserApprovalPlugin};

/// Long enough for a slow machine; only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs a test in a house with the real contributors, under a deadline.
pub(crate) async fn in_house(test: impl AsyncFnOnce(&Arc<Sessions>)) {
    let tested = tokio::time::timeout(DEADLINE, async {
        let app = Owner::root("app");
        let sessions = Sessions::new();
        sessions.learn::<Descriptor>().unwrap();
        app.provide(sessions.clone()).unwrap();
        let plugins = Plugins::new()
            .with(SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
            .with(UserApprovalPlugin, user_approval::Config { default: Policy::Ask });
        plugins.start(&app).await.unwrap();
        test(&sessions).await;
        app.close().await.unwrap();
    });
    tested.await.expect("the test takes longer than it may");
}

/// A child as the drivers in this process make one.
pub(crate) fn delegate(parent: &Session, seed: Seed) -> Session {
    let child = Session::delegated(Delegation::capture(parent).unwrap(), seed);
    let descriptor = Descriptor {
        version: DESCRIPTOR_VERSION,
        mode: ChildMode::OneShot,
        provider: "spawn".into(),
        label: None,
        model: None,
        persona: None,
        tool_filter: None,
        max_depth: None,
        approval: None,
    };
    child.append(descriptor).unwrap();
    child
}

pub(crate) fn turn(session: &Session, turn: u32) {
    session.append(TurnStart { turn }).unwrap();
    session.append(TurnEnd { turn, reason: TurnReason::Completed }).unwrap();
}

/// Logs as text, and how often each was read.
pub(crate) struct Texts {
    vocabulary: Arc<Vocabulary>,
    logs: BTreeMap<SessionId, String>,
    reads: Mutex<BTreeMap<SessionId, usize>>,
}

impl Texts {
    pub(crate) fn new(sessions: &Sessions) -> Self {
        Self { vocabulary: sessions.vocabulary(), logs: BTreeMap::new(), reads: Mutex::default() }
    }

    pub(crate) fn keep(&mut self, session: &Session) {
        let log = session.snapshot();
        let mut text = serde_json::to_string(&**log.header()).unwrap() + "\n";
        log.events().iter().for_each(|event| text += &(event.to_json() + "\n"));
        self.logs.insert(session.id(), text);
    }

    pub(crate) fn insert(&mut self, id: SessionId, text: String) {
        self.logs.insert(id, text);
    }

    pub(crate) fn reads(&self, id: SessionId) -> usize {
        self.reads.lock().unwrap().get(&id).copied().unwrap_or(0)
    }
}

#[async_trait]
impl Logs for Texts {
    async fn list(&self) -> Result<Vec<Row>, ListError> {
        let summary = |text: &String| {
            let header = Vocabulary::decode_header(text.lines().next().unwrap()).unwrap();
            Summary { header: Arc::new(header), first: Vec::new(), bytes: 0, modified: 0, holder: None }
        };
        Ok(self.logs.iter().map(|(id, text)| Row { id: *id, found: Ok(summary(text)) }).collect())
    }

    async fn read(&self, id: SessionId) -> Result<Reading, ReadError> {
        *self.reads.lock().unwrap().entry(id).or_default() += 1;
        let none = || NotFound { id, place: id.to_string() };
        let text = self.logs.get(&id).ok_or_else(none)?;
        Ok(Reading { decoded: self.vocabulary.decode(text.clone()).unwrap(), torn: 0, holder: None })
    }

    async fn header(&self, _: SessionId) -> Option<Arc<Header>> {
        None
    }
}
