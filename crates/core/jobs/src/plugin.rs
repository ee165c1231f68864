use std::time::Duration;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};

use crate::Jobs;

/// Provides [`Jobs`], which announces in the app's realm.
pub struct JobsPlugin;

/// How many jobs there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most that run at the same time, an owner.
    pub running: usize,
    /// The most that are kept after their end, an owner; the oldest is forgotten first.
    pub kept: usize,
    /// How long a job may take to notice that it was killed; then it is dropped.
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { running: 16, kept: 32, grace: Duration::from_secs(15) }
    }
}

#[async_trait]
impl Plugin for JobsPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "jobs"
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        Ok(ctx.provide(Jobs::new(ctx, config))?)
    }
}
