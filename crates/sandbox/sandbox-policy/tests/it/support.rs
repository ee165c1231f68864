//! An app with the policy.

use std::sync::Arc;

use context::{Plugins, Scope};
use sandbox::Mode;
use sandbox_policy::*;
use session::*;

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) policy: Arc<SandboxPolicy>,
}

impl Stage {
    /// With this deployment default.
    pub(crate) async fn new(default: Mode) -> Self {
        let app = Scope::root("app");
        let sessions = Sessions::new();
        app.provide(sessions.clone()).unwrap();
        Plugins::new().with(SandboxPolicyPlugin, Config { default }).start(&app).await.unwrap();
        let policy = app.get::<SandboxPolicy>().unwrap();
        Self { app, sessions, policy }
    }

    pub(crate) fn session(&self) -> Session {
        self.sessions.create("/home/me/project")
    }

    pub(crate) async fn close(self) {
        self.app.close().await.unwrap();
    }
}

pub(crate) fn set(session: &Session, mode: Mode, source: Option<ModeCause>) {
    session.append(ModeSet { mode, source }).unwrap();
}

pub(crate) fn end_turn(session: &Session) {
    session.append(TurnStart { turn: 1 }).unwrap();
    session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
}

pub(crate) fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).unwrap(), seed)
}

/// The log's events, a line each, without their times.
pub(crate) fn lines(log: &Snapshot) -> Vec<String> {
    let line = |event: &Event| {
        let line = event.to_json();
        let data = line.split_once(r#""data":"#).unwrap().1;
        format!("{} {}", event.tag(), &data[..data.len() - 1])
    };
    log.events().iter().map(line).collect()
}

/// The file, as a store would write it.
pub(crate) fn text(session: &Session) -> String {
    let log = session.snapshot();
    let mut text = serde_json::to_string(&**log.header()).unwrap();
    for event in log.events().iter() {
        text += "\n";
        text += &event.to_json();
    }
    text + "\n"
}
