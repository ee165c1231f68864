//! An app of the seams and the loop alone.

use std::sync::Arc;
use std::time::Duration;

use agent::Agents;
use async_trait::async_trait;
use context::{BoxError, Plugins, Scope};

use super::broken::{Broken, Bug};
use crate::testing::Fixture;
use crate::{Config, Limits, SubagentPlugin, Subagents};

pub(super) const NAME: &str = "double";

/// The name of a provider without a bug, beside the one that is tested.
pub(super) const OTHER: &str = "other";

/// A provider of agents in this process, with a bug, or with none.
pub(super) struct House(pub(super) Option<Bug>);

#[async_trait]
impl Fixture for House {
    fn name(&self) -> &str {
        NAME
    }

    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
        spine(app, limits).await?;
        let subagents = app.get::<Subagents>().ok_or("the plugin provides it")?;
        let agents = app.get::<Agents>().ok_or("the plugin provides it")?;
        for (name, bug) in [(NAME, self.0), (OTHER, None)] {
            app.own(subagents.register(name, Arc::new(Broken::new(app, agents.clone(), bug)))?)?;
        }
        Ok(())
    }

    fn patience(&self) -> Duration {
        patience(self.0.is_some())
    }
}

pub(super) async fn spine(app: &Scope, limits: Limits) -> Result<(), BoxError> {
    let plugins = Plugins::new()
        .with(session::SessionsPlugin, ())
        .with(agent::AgentsPlugin, ())
        .with(agent_loop::AgentLoop, ())
        .with(SubagentPlugin, Config { limits });
    Ok(plugins.start(app).await?)
}

/// A bug that hangs is waited for.
pub(super) fn patience(has_bug: bool) -> Duration {
    Duration::from_secs(if has_bug { 2 } else { 20 })
}
