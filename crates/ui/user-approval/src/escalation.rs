//! How a call asks for more, the same way for every tool: the arguments, the question, the grant.
//!
//! A tool whose calls may ask has two arguments, and their schemas are these:
//!
//! ```
//! # use serde::Deserialize; use schemars::JsonSchema; use user_approval::escalation::*;
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     #[serde(default, skip_serializing_if = "Option::is_none")]
//!     #[schemars(with = "SandboxPermissions")]
//!     sandbox_permissions: Option<String>,
//!     #[serde(default, skip_serializing_if = "Option::is_none")]
//!     #[schemars(with = "Justification")]
//!     justification: Option<String>,
//! }
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use sandbox::{EscalationRequest, Grant, Mode, NotGranted};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use tools::{Call, Concurrency, Tool, ToolOutput, code};

use crate::{Approval, Ask, Outcome};

/// The arguments with which a call asks for more.
const ASKING: [&str; 2] = ["sandbox_permissions", "justification"];

/// Whether calls may ask for a wider mode. It is the composition's choice, the same for every session and every mode:
/// the schemas, and with them the cached prefix of the prompt, stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escalation {
    /// The tools take `sandbox_permissions` and `justification`. For compositions that confine.
    #[default]
    Offered,
    /// They do not. For compositions without a sandbox, or with nobody to ask.
    NotOffered,
}

/// What a call says to ask for more: both arguments, or neither.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asks<'a> {
    /// The wider mode.
    pub sandbox_permissions: Option<&'a str>,
    /// Why, in the model's words.
    pub justification: Option<&'a str>,
}

/// The schema of the argument `sandbox_permissions`. The argument itself is a text, so that one which is no mode is
/// answered well.
pub struct SandboxPermissions;

/// The schema of the argument `justification`.
pub struct Justification;

impl Escalation {
    /// Checks what a call asks for, and asks for it, before anything of it runs. `effective` is the mode that the call
    /// has without; `operation` names exactly what it would do, as in `write /etc/hosts`, and is looked at only where
    /// something is asked.
    ///
    /// # Errors
    ///
    /// The answer to the call, which is not to run: arguments that do not hold together, an operation that cannot be
    /// named, or no permission.
    pub async fn granted(
        self,
        call: &Call,
        asks: Asks<'_>,
        effective: Mode,
        operation: impl Future<Output = Result<String, ToolOutput>> + Send,
    ) -> Result<Option<Grant>, ToolOutput> {
        let Asks { sandbox_permissions, justification } = asks;
        match self {
            Self::Offered => {}
            Self::NotOffered if sandbox_permissions.is_none() && justification.is_none() => return Ok(None),
            Self::NotOffered => {
                let text = "`sandbox_permissions` and `justification` are not arguments here: leave them out";
                return Err(ToolOutput::error(code::INVALID_ARGUMENTS, text));
            }
        }
        let request = EscalationRequest::from_args(sandbox_permissions, justification, effective)
            .map_err(|error| ToolOutput::error(code::INVALID_ARGUMENTS, error.to_string()))?;
        let Some(request) = request else { return Ok(None) };
        let grant = escalate(call, &operation.await?, &request).await;
        grant.map(Some).map_err(|refused| ToolOutput::error(code::ESCALATION, refused.to_string()))
    }

    /// The tool as it is offered: without the arguments that ask for more, where nobody may.
    pub fn offering(self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        match self {
            Self::Offered => tool,
            Self::NotOffered => {
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
}

/// Asks for a wider mode for one call, before anything of it has run. `operation` names exactly what the call would do,
/// as in `write /etc/hosts`; it is what a person decides on.
///
/// Without an approval service nobody can be asked.
pub async fn escalate(call: &Call, operation: &str, request: &EscalationRequest) -> Result<Grant, NotGranted> {
    let Some(approval) = call.ctx.get::<Approval>() else { return Err(NotGranted::Unavailable) };
    let mode = request.sandbox_permissions();
    let reason = format!("{operation} under {mode}");
    let ask = Ask::new(call.name.clone(), reason).because(request.justification()).for_call(&call.call_id);
    match approval.request(&call.session, ask, &call.cancelled).await {
        Ok(Outcome::AllowedOnce) => Ok(Grant::new(mode)),
        Ok(Outcome::Rejected) => Err(NotGranted::Rejected),
        Ok(Outcome::Cancelled) => Err(NotGranted::Cancelled),
        Ok(Outcome::Unavailable) => Err(NotGranted::Unavailable),
        Err(error) => {
            tracing::error!(session = %call.session.id(), %error, "an ask failed");
            Err(NotGranted::Unavailable)
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

    fn cancel_grace(&self) -> std::time::Duration {
        self.tool.cancel_grace()
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        self.tool.call(call).await
    }
}

impl JsonSchema for SandboxPermissions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SandboxPermissions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let wider = [Mode::WorkspaceWrite, Mode::DangerFullAccess].map(Mode::as_str);
        json_schema!({
            "description": "Only to ask for more than the current mode allows: a wider mode for this call alone.",
            "enum": wider,
            "type": "string",
        })
    }
}

impl JsonSchema for Justification {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Justification".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Only with `sandbox_permissions`: why this call needs it, in one sentence, for the person who \
                            is asked.",
            "type": "string",
        })
    }
}
