use std::sync::Arc;

use async_trait::async_trait;
use commands::Command;
use context::{BoxError, Ctx, Need, Plugin};
use sandbox_policy::SandboxPolicy;
use session::Sessions;
use user_approval::Approval;

use crate::command::PresetCommand;
use crate::{Permission, PresetChosen, Presets};

/// Provides [`Permission`].
pub struct PermissionPlugin;

/// How permission is configured.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What can be chosen.
    pub presets: Presets,
}

#[async_trait]
impl Plugin for PermissionPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "permission"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Sessions>(), Need::of::<SandboxPolicy>(), Need::of::<Approval>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let sessions = ctx.get::<Sessions>().ok_or("no `Sessions` service")?;
        let sandbox = ctx.get::<SandboxPolicy>().ok_or("no `SandboxPolicy` service")?;
        let approval = ctx.get::<Approval>().ok_or("no `Approval` service")?;
        sessions.learn::<PresetChosen>()?;
        let permission = Permission::new(config.presets, sandbox, approval);
        ctx.register::<dyn Command>("preset", Arc::new(PresetCommand(permission.clone())))?;
        Ok(ctx.provide(permission)?)
    }
}
