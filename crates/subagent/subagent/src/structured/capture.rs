use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use context::{Around, BoxError, Ctx, Next};
use llm::ToolSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::{Snapshot, ToolReturned};
use tools::{Call, Concurrency, HandIn, OUTPUT_LIMIT, Tool, ToolExecution, ToolOutput, code};

use super::OutputSchema;

/// The name of the tool with which a child hands in its result.
pub const RESULT_TOOL: &str = "submit_result";

/// The longest arguments that are read as a result, in bytes. As JSON without white space it must fit [`OUTPUT_LIMIT`].
const RESULT_LIMIT: usize = 1024 * 1024;

/// The tool with which a child hands in its result.
pub(crate) struct ResultTool {
    shown: ToolSchema,
    schema: OutputSchema,
    captured: Captured,
}

/// Whether a child has handed in its result. As a layer, it lets nothing run from then on.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<AtomicBool>);

impl ResultTool {
    pub(crate) fn new(schema: OutputSchema, captured: Captured) -> Arc<Self> {
        let description = "Hands in the result of your task, and ends it. Call it once, last, when everything else is \
            done: a final message without it is a failure.";
        let shown = ToolSchema {
            name: RESULT_TOOL.into(),
            description: description.into(),
            input_schema: schema.as_value().clone(),
        };
        Arc::new(Self { shown, schema, captured })
    }
}

#[async_trait]
impl Tool for ResultTool {
    fn schema(&self) -> &ToolSchema {
        &self.shown
    }

    /// What was asked before it is done by then, and what was asked after it meets the layer.
    fn concurrency(&self) -> Concurrency {
        Concurrency::Alone
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        let structured = match result_of(&call.arguments) {
            Ok(structured) => structured,
            Err(why) => return refused(&why),
        };
        if let Some(mistake) = self.schema.mistake(&structured) {
            return refused(&mistake);
        }
        let size = structured.to_string().len();
        if size > OUTPUT_LIMIT {
            return refused(&format!("it has {size} bytes as JSON, at most {OUTPUT_LIMIT} reach whoever asked for it"));
        }
        if call.cancelled.is_cancelled() {
            // A layer held the call up. What is captured counts, so it must not come behind the end of the turn.
            return ToolOutput::error(code::CANCELLED, "the result was not taken: the turn was cancelled before it");
        }
        self.captured.0.store(true, Ordering::Release);
        // That it ends the turn is what a `HandIn` is.
        ToolOutput::text("the result was handed in").with_meta(&Structured { structured })
    }
}

#[async_trait]
impl Around<ToolExecution> for Captured {
    async fn around(&self, call: Call, next: Next<'_, ToolExecution>) -> ToolOutput {
        if self.0.load(Ordering::Acquire) {
            let text = format!("`{}` was not run: the result was handed in before it, and the task is over", call.name);
            return ToolOutput::error(code::CANCELLED, text);
        }
        next.run(call).await
    }
}

/// The meta of the call that handed a result in.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structured {
    structured: Value,
}

/// Registers the tool and its layer in a child's scope.
pub(crate) fn offer(ctx: &Ctx, schema: OutputSchema) -> Result<(), BoxError> {
    let captured = Captured::default();
    ctx.provide(Arc::new(HandIn(ResultTool::new(schema, captured.clone()))))?;
    Ok(ctx.own(ctx.realm().around::<ToolExecution>(captured))?)
}

/// The result that a log tells of from `from` on, if one was handed in.
pub(crate) fn structured_in(log: &Snapshot, from: u64) -> Option<Value> {
    let mut metas = log.events_from(from).filter_map(|event| event.get::<ToolReturned>()?.meta.as_ref());
    metas.find_map(|meta| Some(serde_json::from_str::<Structured>(meta.get()).ok()?.structured))
}

fn result_of(arguments: &str) -> Result<Value, String> {
    if arguments.len() > RESULT_LIMIT {
        return Err(format!("it has {} bytes, at most {RESULT_LIMIT} are taken", arguments.len()));
    }
    serde_json::from_str(arguments).map_err(|error: serde_json::Error| error.to_string())
}

fn refused(why: &str) -> ToolOutput {
    let text = format!("the result does not fit: {why}. Correct it and call `{RESULT_TOOL}` again.");
    ToolOutput::error(code::INVALID_ARGUMENTS, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_up_to_its_limit() {
        let padded = |len: usize| format!("1{}", " ".repeat(len - 1));
        assert_eq!(result_of(&padded(RESULT_LIMIT)), Ok(1.into()));
        let refused = result_of(&padded(RESULT_LIMIT + 1)).expect_err("it is longer than is taken");
        assert_eq!(refused, "it has 1048577 bytes, at most 1048576 are taken");
    }
}
