//! The tool of the suite.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use llm::ToolSchema;
use session::SessionId;
use tools::{Call, Concurrency, Tool, ToolOutput};

/// Its name.
pub(super) const PROBE: &str = "contract_probe";

/// The tool [`PROBE`]: it counts its calls.
pub(super) struct Probe {
    schema: ToolSchema,
    calls: Mutex<Vec<SessionId>>,
}

impl Probe {
    pub(super) fn new() -> Arc<Self> {
        let input_schema = Arc::new(serde_json::json!({ "type": "object" }));
        let schema = ToolSchema { name: PROBE.into(), description: "Counts.".into(), input_schema };
        Arc::new(Self { schema, calls: Mutex::default() })
    }

    /// How often a session has called it.
    pub(super) fn calls_of(&self, id: SessionId) -> usize {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|of| **of == id).count()
    }
}

#[async_trait]
impl Tool for Probe {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        Concurrency::Shared
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call.session.id());
        ToolOutput::text("counted")
    }
}
