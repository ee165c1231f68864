use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use session::{Contributor, Rank, Sessions, Snapshot, Stamps};

use crate::{Approval, ApprovalAsked, ApprovalDecided, Policy, PolicyCause, PolicySet};

/// Provides [`Approval`] and pins children.
pub struct UserApprovalPlugin;

/// How approval is configured.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// What sessions without an override follow.
    pub default: Policy,
}

#[async_trait]
impl Plugin for UserApprovalPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "user-approval"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Sessions>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let sessions = ctx.get::<Sessions>().ok_or("no `Sessions` service")?;
        sessions.learn::<PolicySet>()?;
        sessions.learn::<ApprovalAsked>()?;
        sessions.learn::<ApprovalDecided>()?;
        ctx.own(sessions.register_contributor("user-approval", Arc::new(Pin))?)?;
        Ok(ctx.provide(Approval::new(config.default))?)
    }
}

/// Whatever the parent's own policy is, nobody is asked on behalf of a child.
struct Pin;

impl Contributor for Pin {
    fn rank(&self) -> Rank {
        Rank::Approval
    }

    fn contribute(&self, _: &Snapshot, stamps: &mut Stamps) {
        stamps.add(PolicySet { policy: Policy::Never, source: Some(PolicyCause::Delegation) });
    }
}
