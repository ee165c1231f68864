use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};

use crate::Agents;

/// Provides [`Agents`], who look the app's realm up.
pub struct AgentsPlugin;

#[async_trait]
impl Plugin for AgentsPlugin {
    type Config = ();

    fn name(&self) -> &'static str {
        "agent"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(ctx.provide(Agents::new(ctx))?)
    }
}
