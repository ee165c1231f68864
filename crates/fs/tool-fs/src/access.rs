//! What the tools have in common: finding the files, asking for more, telling what failed.

use std::sync::Arc;

use async_trait::async_trait;
use fs::{FileSystem, FsError};
use sandbox::{EscalationRequest, Grant, Operation, one_line};
use tools::{Call, Concurrency, Tool, ToolOutput, code};

use crate::Escalation;

/// The arguments with which a call asks for more.
const ASKING: [&str; 2] = ["sandbox_permissions", "justification"];

pub(crate) fn files(call: &Call) -> Result<Arc<dyn FileSystem>, ToolOutput> {
    let none = || ToolOutput::error(code::FAILED, "there are no files here: no file system is composed");
    call.ctx.get::<dyn FileSystem>().ok_or_else(none)
}

pub(crate) fn failed(error: FsError) -> ToolOutput {
    let text = error.to_string();
    match error.denial() {
        Some(denial) => ToolOutput::error(code::SANDBOX_DENIED, text).with_meta(denial),
        None => ToolOutput::error(code::FAILED, text),
    }
}

/// Asks for what a call asks for, if it does, before anything of it runs.
pub(crate) async fn granted(
    call: &Call,
    files: &dyn FileSystem,
    (operation, path): (Operation, &str),
    (sandbox_permissions, justification): (Option<&str>, Option<&str>),
    escalation: Escalation,
) -> Result<Option<Grant>, ToolOutput> {
    match escalation {
        Escalation::Offered => {}
        Escalation::NotOffered if sandbox_permissions.is_none() && justification.is_none() => return Ok(None),
        Escalation::NotOffered => {
            let text = "`sandbox_permissions` and `justification` are not arguments here: leave them out";
            return Err(ToolOutput::error(code::INVALID_ARGUMENTS, text));
        }
    }
    let request = EscalationRequest::from_args(sandbox_permissions, justification, files.mode())
        .map_err(|error| ToolOutput::error(code::INVALID_ARGUMENTS, error.to_string()))?;
    let Some(request) = request else { return Ok(None) };
    let target = files.leads_to(path).await.map_err(failed)?;
    let operation = format!("{operation} {}", one_line(&target.to_string_lossy()));
    let grant = user_approval::escalate(call, &operation, &request).await;
    grant.map(Some).map_err(|refused| ToolOutput::error(code::ESCALATION, refused.to_string()))
}

/// The tool as it is offered: without the arguments that ask for more, where nobody may.
pub(crate) fn offering(tool: Arc<dyn Tool>, escalation: Escalation) -> Arc<dyn Tool> {
    match escalation {
        Escalation::Offered => tool,
        Escalation::NotOffered => {
            let mut schema = tool.schema().clone();
            let mut input = (*schema.input_schema).clone();
            if let Some(properties) = input["properties"].as_object_mut() {
                properties.retain(|name, _| !ASKING.contains(&name.as_str()));
            }
            schema.input_schema = Arc::new(input);
            Arc::new(Silent { tool, schema })
        }
    }
}

struct Silent {
    tool: Arc<dyn Tool>,
    schema: llm::ToolSchema,
}

#[async_trait]
impl Tool for Silent {
    fn schema(&self) -> &llm::ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        self.tool.concurrency()
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        self.tool.call(call).await
    }
}
