use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool};

use crate::{Owned, failed, standing};

pub(crate) struct Kill(pub(crate) Owned);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Its id, such as job-1.
    job: String,
}

#[async_trait]
impl TypedTool for Kill {
    type Args = Args;

    fn name(&self) -> &str {
        "job_kill"
    }

    fn description(&self) -> Cow<'_, str> {
        "Stops one of your background jobs.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    /// A job that is killed goes on ending, whether or not anybody waits.
    fn cancel_grace(&self) -> Duration {
        Duration::ZERO
    }

    async fn run(&self, Args { job }: Args, call: &Call) -> ToolOutput {
        let owner = match self.0.owner(call) {
            Ok(owner) => owner,
            Err(answer) => return answer,
        };
        let id = match self.0.jobs.id(&owner, &job) {
            Ok(id) => id,
            Err(unknown) => return failed(unknown),
        };
        match self.0.jobs.kill(&owner, id).await {
            Ok(info) => ToolOutput::text(standing(&info)),
            Err(unknown) => failed(unknown),
        }
    }
}
