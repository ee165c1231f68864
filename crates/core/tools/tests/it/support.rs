//! An app, a session, and tools made of a function.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use context::{Boxed, Ctx, Scope};
use llm::ToolSchema;
use session::Sessions;
use tools::*;

/// Far longer than any of these tests takes, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Everything since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

type Body = dyn Fn(Call) -> Boxed<'static, ToolOutput> + Send + Sync;

/// A tool with an empty schema.
pub(crate) struct Fake {
    schema: ToolSchema,
    concurrency: Concurrency,
    body: Box<Body>,
}

#[async_trait]
impl Tool for Fake {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    fn concurrency(&self) -> Concurrency {
        self.concurrency
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        (self.body)(call.clone()).await
    }
}

/// A tool that does what `body` does.
pub(crate) fn fake<F>(
    name: &str,
    concurrency: Concurrency,
    body: impl Fn(Call) -> F + Send + Sync + 'static,
) -> Arc<dyn Tool>
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let schema = ToolSchema { name: name.into(), description: "A fake.".into(), input_schema: Arc::default() };
    Arc::new(Fake { schema, concurrency, body: Box::new(move |call| Box::pin(body(call))) })
}

/// A tool that answers with a text.
pub(crate) fn says(name: &str, text: &'static str) -> Arc<dyn Tool> {
    fake(name, Concurrency::Alone, move |_| async move { ToolOutput::text(text) })
}

/// Registers tools under their names.
pub(crate) fn register_all(ctx: &Ctx, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
    for tool in tools {
        ctx.register::<dyn Tool>(tool.schema().name.clone(), tool).unwrap();
    }
}

/// An app in which some tools are registered.
pub(crate) fn app_with(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Scope {
    let app = Scope::root("app");
    register_all(&app, tools);
    app
}

pub(crate) fn call_to(ctx: &Ctx, name: &str, arguments: &str) -> Call {
    Call::new(ctx, Sessions::new().create("/home/me"), name, arguments)
}

/// Runs one call as an app's agent would.
pub(crate) async fn run(ctx: &Ctx, name: &str, arguments: &str) -> ToolOutput {
    in_time(Runner::new(ctx.realm()).run(call_to(ctx, name, arguments))).await
}

/// The kind of failure, and the text.
pub(crate) fn failed(output: &ToolOutput) -> (&str, String) {
    assert!(output.is_error(), "{output:?}");
    (output.error.as_deref().unwrap(), output.to_text())
}
