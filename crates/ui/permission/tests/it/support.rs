//! An app with both knobs and the presets.

use std::sync::Arc;
use std::time::Duration;

use context::{Plugins, Scope};
use permission::*;
use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet, SandboxPolicy, SandboxPolicyPlugin};
use session::*;
use user_approval::{Approval, Policy, PolicyCause, PolicySet, UserApprovalPlugin};

pub(crate) use Mode::{DangerFullAccess, ReadOnly, WorkspaceWrite};
pub(crate) use Policy::{Ask, Never};

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it should not hang")
}

/// Where both knobs stand.
pub(crate) type Setting = (Mode, Policy);

pub(crate) const SETTINGS: [Setting; 6] = [
    (ReadOnly, Ask),
    (ReadOnly, Never),
    (WorkspaceWrite, Ask),
    (WorkspaceWrite, Never),
    (DangerFullAccess, Ask),
    (DangerFullAccess, Never),
];

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) sandbox: Arc<SandboxPolicy>,
    pub(crate) approval: Arc<Approval>,
    pub(crate) permission: Arc<Permission>,
}

impl Stage {
    /// With the default presets, in a deployment with this default.
    pub(crate) async fn new(default: Setting) -> Self {
        Self::with(default, Presets::default()).await
    }

    pub(crate) async fn with(default: Setting, presets: Presets) -> Self {
        let app = Scope::root("app");
        let plugins = Plugins::new()
            .with(SessionsPlugin, ())
            // First: it waits for what it needs.
            .with(PermissionPlugin, Config { presets })
            .with(SandboxPolicyPlugin, sandbox_policy::Config { default: default.0 })
            .with(UserApprovalPlugin, user_approval::Config { default: default.1 });
        in_time(plugins.start(&app)).await.unwrap();
        let (sessions, permission) = (app.get().unwrap(), app.get().unwrap());
        Self { sandbox: app.get().unwrap(), approval: app.get().unwrap(), app, sessions, permission }
    }

    pub(crate) fn session(&self) -> Session {
        self.sessions.create("/home/me/project")
    }

    /// A session whose user has set both knobs.
    pub(crate) fn session_at(&self, (mode, policy): Setting) -> Session {
        let session = self.session();
        session.append(ModeSet::by_user(mode)).unwrap();
        session.append(PolicySet::by_user(policy)).unwrap();
        session
    }

    pub(crate) fn setting(&self, session: &Session) -> Setting {
        (self.sandbox.effective(session), self.approval.effective(session))
    }

    pub(crate) fn current(&self, session: &Session) -> String {
        self.permission.current(session).to_string()
    }

    pub(crate) async fn close(self) {
        in_time(self.app.close()).await.unwrap();
    }
}

/// Every setting as a preset: `read-only_ask` and so on.
pub(crate) fn every_setting() -> Presets {
    let preset = |setting: Setting| Preset { name: name_of(setting).into(), sandbox: setting.0, approval: setting.1 };
    Presets::new(SETTINGS.map(preset).into()).unwrap()
}

pub(crate) fn name_of((mode, policy): Setting) -> String {
    format!("{mode}_{}", if policy == Ask { "ask" } else { "never" })
}

pub(crate) fn mode_by_preset(mode: Mode) -> String {
    format!(r#"sandbox/mode {{"mode":"{mode}","source":"preset"}}"#)
}

pub(crate) fn policy_by_preset(policy: Policy) -> String {
    let set = PolicySet { policy, source: Some(PolicyCause::Preset) };
    format!("approval/policy {}", serde_json::to_string(&set).unwrap())
}

pub(crate) fn chosen(name: &str) -> String {
    format!(r#"permission/preset {{"name":"{name}"}}"#)
}

pub(crate) fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).unwrap(), seed)
}

pub(crate) fn stamped(child: &Session) -> Option<Mode> {
    child.latest::<ModeSet>().map(|set| {
        assert_eq!(set.source, Some(ModeCause::Delegation));
        set.mode
    })
}

/// The log's events, a line each, without their times.
pub(crate) fn lines(session: &Session) -> Vec<String> {
    lines_from(session, 0)
}

pub(crate) fn lines_from(session: &Session, seq: u64) -> Vec<String> {
    let line = |event: &Event| {
        let line = event.to_json();
        let data = line.split_once(r#""data":"#).unwrap().1;
        format!("{} {}", event.tag(), &data[..data.len() - 1])
    };
    session.snapshot().events_from(seq).map(line).collect()
}

/// The first `length` events of the file, as a store would have written it.
pub(crate) fn text(session: &Session, length: u64) -> String {
    let log = session.snapshot();
    let mut text = serde_json::to_string(&**log.header()).unwrap() + "\n";
    for event in log.events().iter().take(usize::try_from(length).unwrap()) {
        text += &event.to_json();
        text += "\n";
    }
    text
}

pub(crate) fn reopened(sessions: &Arc<Sessions>, text: String) -> Session {
    sessions.resume(sessions.vocabulary().decode(text).unwrap()).unwrap()
}
