use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};

use crate::Sessions;

/// Provides [`Sessions`] with the machine's clock.
pub struct SessionsPlugin;

#[async_trait]
impl Plugin for SessionsPlugin {
    type Config = ();

    fn name(&self) -> &'static str {
        "session"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(ctx.provide(Sessions::new())?)
    }
}
