//! Which tools anybody may use.

use std::sync::Arc;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use tools::ToolFilter;

/// Under which name the deployment's filter stands in the app's realm.
const DEPLOYMENT: &str = "deployment";

/// Holds everybody to the deployment's tools, where it says which: children and top-level agents alike.
pub struct DeploymentTools;

#[async_trait]
impl Plugin for DeploymentTools {
    type Config = Option<ToolFilter>;

    fn name(&self) -> &'static str {
        "deployment-tools"
    }

    async fn apply(&self, ctx: &Ctx, filter: Option<ToolFilter>) -> Result<(), BoxError> {
        match filter {
            Some(filter) => Ok(ctx.register(DEPLOYMENT, Arc::new(filter))?),
            None => Ok(()),
        }
    }
}
