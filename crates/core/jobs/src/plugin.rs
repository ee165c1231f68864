use std::time::Duration;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use session::Sessions;

use crate::{JobBegan, Jobs};

/// Provides [`Jobs`], which announces in the app's realm.
pub struct JobsPlugin;

/// How many jobs there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most that run at the same time, an owner.
    pub running: usize,
    /// The most that are kept once their owner knows how they ended and what they said; the oldest is forgotten first.
    pub kept: usize,
    /// With so many ended that the owner has not heard of it starts no more. So many are kept, too, of those that it has
    /// heard of and whose output it has not read.
    pub unheard: usize,
    /// How long a job may take to notice that it was killed; then it is dropped.
    pub grace: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { running: 16, kept: 32, unheard: 256, grace: Duration::from_secs(15) }
    }
}

#[async_trait]
impl Plugin for JobsPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "jobs"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Sessions>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        ctx.get::<Sessions>().ok_or("no `Sessions` service")?.learn::<JobBegan>()?;
        Ok(ctx.provide(Jobs::new(ctx, config))?)
    }
}
