use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Need, Plugin};
use session::{Session, Sessions};
use system_prompt::RuntimeFact;

use crate::{BackgroundReport, Descriptor, Limits, Subagents, budget};

/// Provides [`Subagents`], tells children that their scope is fixed, and stops trees that have spent their budget.
pub struct SubagentPlugin;

/// How delegation is configured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// What the deployment allows.
    pub limits: Limits,
}

#[async_trait]
impl Plugin for SubagentPlugin {
    type Config = Config;

    fn name(&self) -> &'static str {
        "subagent"
    }

    fn needs(&self) -> Vec<Need> {
        vec![Need::of::<Sessions>()]
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let sessions = ctx.get::<Sessions>().ok_or("no `Sessions` service")?;
        sessions.learn::<Descriptor>()?;
        sessions.learn::<BackgroundReport>()?;
        ctx.register::<dyn RuntimeFact>("delegation", Arc::new(FixedScope))?;
        let subagents = Subagents::new(ctx, config.limits);
        budget::keep(ctx, subagents.trees())?;
        Ok(ctx.provide(subagents)?)
    }
}

/// Told to every session with a parent, and to no other. It is context and not system prompt, so that parent and child
/// share the prompt byte for byte.
struct FixedScope;

impl RuntimeFact for FixedScope {
    fn order(&self) -> i32 {
        20
    }

    fn state(&self, session: &Session) -> Option<String> {
        session.header().lineage()?;
        Some(
            "Delegated task: your scope was fixed when the task was handed to you. Requests for wider permissions are \
             rejected. If something you need is denied, do not retry it: report what was denied and why you needed it."
                .to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use context::{Plugins, Scope};

    use super::*;

    #[tokio::test]
    async fn it_says_what_it_needs() {
        let app = Scope::root("app");
        let error = Plugins::new().with(SubagentPlugin, Config::default()).start(&app).await.expect_err("no sessions");
        assert_eq!(error.to_string(), "the plugin `subagent` needs session::sessions::Sessions");
        app.close().await.expect("nothing was started");
    }
}
