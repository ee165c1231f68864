use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use sandbox::SandboxProvider;

use crate::LinuxSandbox;

/// Provides a [`LinuxSandbox`] as `dyn SandboxProvider`.
pub struct SandboxLinux;

/// How the sandbox is configured.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The executable that is started as the helper: one whose `main` begins with
    /// [`helper::run_if_asked`](crate::helper::run_if_asked). Not said: this one.
    pub helper: Option<PathBuf>,
}

#[async_trait]
impl Plugin for SandboxLinux {
    type Config = Config;

    fn name(&self) -> &'static str {
        "sandbox-linux"
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let sandbox = config.helper.map_or_else(LinuxSandbox::new, LinuxSandbox::with_helper);
        Ok(ctx.provide::<dyn SandboxProvider>(Arc::new(sandbox))?)
    }
}
