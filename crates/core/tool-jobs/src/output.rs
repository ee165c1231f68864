use std::borrow::Cow;
use std::time::Duration;

use agent::AgentRef;
use async_trait::async_trait;
use jobs::JobId;
use schemars::JsonSchema;
use serde::Deserialize;
use tools::{Call, Concurrency, ToolOutput, TypedTool, code};

use crate::{Owned, failed, standing};

pub(crate) const NAME: &str = "job_output";

/// The longest that a call waits for a job's end, in milliseconds.
const WAIT_LIMIT: u64 = 600_000;

pub(crate) struct Output(pub(crate) Owned);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Its id, such as job-1.
    job: String,
    /// Wait so long for it to end, 600000 at most.
    #[serde(default)]
    wait_ms: u64,
}

#[async_trait]
impl TypedTool for Output {
    type Args = Args;

    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> Cow<'_, str> {
        "Reads what one of your background jobs has put out so far, or its result. A job's end is told to you: wait here \
         only if you have nothing else to do."
            .into()
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn run(&self, Args { job, wait_ms }: Args, call: &Call) -> ToolOutput {
        if wait_ms > WAIT_LIMIT {
            let text = format!("`wait_ms` is {wait_ms}; at most {WAIT_LIMIT} are waited");
            return ToolOutput::error(code::INVALID_ARGUMENTS, text);
        }
        let owner = match self.0.owner(call) {
            Ok(owner) => owner,
            Err(answer) => return answer,
        };
        let id = match self.0.jobs.id(&owner, &job) {
            Ok(id) => id,
            Err(unknown) => return failed(unknown),
        };
        if wait_ms > 0 {
            let ended = tokio::time::timeout(Duration::from_millis(wait_ms), self.0.jobs.ended(&owner, id));
            if call.cancelled.run_until_cancelled(ended).await.is_none() {
                return ToolOutput::error(code::CANCELLED, format!("no longer waiting for {id}"));
            }
        }
        self.answer(&owner, id)
    }
}

impl Output {
    fn answer(&self, owner: &AgentRef, id: JobId) -> ToolOutput {
        let read = match self.0.jobs.output(owner, id) {
            Ok(read) => read,
            Err(unknown) => return failed(unknown),
        };
        let text = match read.text.trim_end() {
            "" => format!("{}, no output", standing(&read.info)),
            text => format!("{}:\n{text}", standing(&read.info)),
        };
        match read.denial {
            // As a denial of a call: that comes first. It is in the log already, and counts once.
            Some(denial) => ToolOutput::error(code::SANDBOX_DENIED, format!("{denial}\n{text}")),
            None => ToolOutput::text(text),
        }
    }
}
