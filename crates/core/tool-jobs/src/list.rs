use std::borrow::Cow;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool};

use crate::{Owned, standing};

pub(crate) struct List(pub(crate) Owned);

// Some models' providers refuse an object without properties.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("properties" = {}))]
pub(crate) struct Args {}

#[async_trait]
impl TypedTool for List {
    type Args = Args;

    fn name(&self) -> &str {
        "job_list"
    }

    fn description(&self) -> Cow<'_, str> {
        "Lists your background jobs.".into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, _: Args, call: &Call) -> ToolOutput {
        let owner = match self.0.owner(call) {
            Ok(owner) => owner,
            Err(answer) => return answer,
        };
        let lines: Vec<String> = self.0.jobs.list(&owner).iter().map(standing).collect();
        ToolOutput::text(if lines.is_empty() { "no jobs".to_owned() } else { lines.join("\n") })
    }
}
