//! Which sandbox mode a session runs under.
//!
//! *Owns:* the `sandbox/mode` and `sandbox/denied` events, the deployment default, the effective mode, what a child is handed of it, what the
//! model is told of it.
//! *Never:* enforcement, approval, a grant that is stored, another session's log.
//!
//! `effective = grant for this call ?? last sandbox/mode event ?? deployment default`. The grant is the caller's.
//!
//! ```
//! # use context::{Plugins, Scope}; use sandbox::Mode; use sandbox_policy::*; use session::{Delegation, Seed, Session, Sessions};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! let sessions = Sessions::new();
//! app.provide(sessions.clone())?;
//! Plugins::new().with(SandboxPolicyPlugin, Config { default: Mode::WorkspaceWrite }).start(&app).await?;
//! let policy = app.get::<SandboxPolicy>().unwrap();
//! let parent = sessions.create("/home/me/project");
//! assert_eq!(policy.effective(&parent), Mode::WorkspaceWrite);
//! parent.append(ModeSet::by_user(Mode::ReadOnly))?;
//! let child = Session::delegated(Delegation::capture(&parent)?, Seed::Fresh);
//! assert_eq!(policy.effective(&child), Mode::ReadOnly);
//! # app.close().await?; Ok(()) }
//! ```

mod denied;
mod fact;

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use sandbox::{Mode, ModeSource};
use serde::{Deserialize, Serialize};
use session::{Contributor, Event, Payload, Rank, Session, Sessions, Snapshot, Stamps};
use system_prompt::RuntimeFact;

pub use denied::Denied;

/// A session's mode was set: an override. The last one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeSet {
    /// From here on.
    pub mode: Mode,
    /// Why; a user's own switch says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<ModeCause>,
}

/// Why a mode was set, if a user did not simply switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeCause {
    /// A front door recorded what a new top-level session starts with.
    Initial,
    /// A permission preset was chosen.
    Preset,
    /// The parent's, at the instant of the delegation.
    Delegation,
    /// An operator narrowed the whole tree.
    Ancestor,
}

impl ModeSet {
    /// A user's own switch.
    pub fn by_user(mode: Mode) -> Self {
        Self { mode, source: None }
    }
}

impl Payload for ModeSet {
    const TAG: &'static str = "sandbox/mode";
    const DECISIVE: bool = true;
}

/// The service. Its deployment default may change while unswitched sessions follow it.
pub struct SandboxPolicy {
    default: RwLock<Mode>,
}

/// What decides a session's mode.
#[derive(Clone, Debug)]
pub enum Decision {
    /// An event in the session's own log.
    Override(ModeSet, Event),
    /// No event does: the session follows the deployment default.
    Default,
}

impl SandboxPolicy {
    /// A policy with a deployment default.
    pub fn new(default: Mode) -> Arc<Self> {
        Arc::new(Self { default: RwLock::new(default) })
    }

    /// What unswitched sessions follow.
    pub fn default_mode(&self) -> Mode {
        *self.default.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what unswitched sessions follow, those running now included.
    pub fn set_default(&self, mode: Mode) {
        *self.default.write().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// The mode of a session at this moment, O(1): its last override, or the deployment default.
    pub fn effective(&self, session: &Session) -> Mode {
        session.latest::<ModeSet>().map_or_else(|| self.default_mode(), |set| set.mode)
    }

    /// The mode of a session, asked for anew each time: what an enforcer is given.
    pub fn source_for(self: &Arc<Self>, session: &Session) -> Arc<dyn ModeSource> {
        Arc::new(SessionMode { policy: self.clone(), session: session.clone() })
    }
}

/// What decides the mode, from the log alone.
pub fn decision(log: &Snapshot) -> Decision {
    match (log.latest::<ModeSet>(), log.latest_event::<ModeSet>()) {
        (Some(set), Some(event)) => Decision::Override(*set, event.clone()),
        _ => Decision::Default,
    }
}

struct SessionMode {
    policy: Arc<SandboxPolicy>,
    session: Session,
}

impl ModeSource for SessionMode {
    fn mode(&self) -> Mode {
        self.policy.effective(&self.session)
    }
}

/// Provides [`SandboxPolicy`] and hands overrides down.
pub struct SandboxPolicyPlugin;

/// How the policy is configured.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The deployment default.
    pub default: Mode,
}

#[async_trait]
impl Plugin for SandboxPolicyPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "sandbox-policy"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Sessions>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let sessions = ctx.get::<Sessions>().ok_or("no `Sessions` service")?;
        sessions.learn::<ModeSet>()?;
        sessions.learn::<Denied>()?;
        ctx.own(sessions.register_contributor("sandbox-policy", Arc::new(HandDown))?)?;
        let policy = SandboxPolicy::new(config.default);
        ctx.register::<dyn RuntimeFact>("sandbox", Arc::new(fact::ModeFact(policy.clone())))?;
        Ok(ctx.provide(policy)?)
    }
}

/// An override is copied; the deployment default and grants never are.
struct HandDown;

impl Contributor for HandDown {
    fn rank(&self) -> Rank {
        Rank::Sandbox
    }

    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps) {
        if let Some(ModeSet { mode, .. }) = parent.latest() {
            stamps.add(ModeSet { mode: *mode, source: Some(ModeCause::Delegation) });
        }
    }
}
