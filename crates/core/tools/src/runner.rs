use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use context::{Chain, Middleware, Realm};
use futures_util::stream::{self, StreamExt as _};
use futures_util::{FutureExt as _, future};
use llm::ToolSchema;

use crate::limit::limit_output;
use crate::{Call, Concurrency, HandIn, Then, Tool, ToolFilter, ToolOutput, code};

/// The most calls of one response that run at the same time.
pub const PARALLEL_LIMIT: usize = 8;

/// The chain around every call: a layer may refuse it or rewrite it, run it, and look at or rewrite what it answered.
pub struct ToolExecution;

impl Chain for ToolExecution {
    type Input = Call;
    type Output = ToolOutput;
}

/// Runs the tools that can be found from a realm.
pub struct Runner {
    realm: Realm,
    layers: Middleware<ToolExecution>,
    seen: Option<u64>,
    tools: Arc<[Arc<dyn Tool>]>,
    schemas: Arc<[ToolSchema]>,
    /// The one of the tools that hands a result in.
    hand_in: Option<Arc<dyn Tool>>,
}

impl Runner {
    /// Looks tools up from `realm`, again whenever something there changes.
    pub fn new(realm: &Realm) -> Self {
        Self {
            realm: realm.clone(),
            layers: realm.middleware(),
            seen: None,
            tools: Arc::default(),
            schemas: Arc::default(),
            hand_in: None,
        }
    }

    /// What the model may call now, in order of registration. The same allocation until a tool comes or goes.
    pub fn schemas(&mut self) -> &Arc<[ToolSchema]> {
        self.refresh();
        &self.schemas
    }

    /// Runs one call through the pipeline.
    pub async fn run(&mut self, call: Call) -> ToolOutput {
        self.refresh();
        let tool = find(&self.tools, self.hand_in.as_ref(), &call);
        let layers = self.layers.layers();
        run_one(layers, tool, call).await
    }

    /// Runs the calls of one response: neighbours that may overlap do, at most [`PARALLEL_LIMIT`] at once, and `done`
    /// gets every result in the order of the calls, each as soon as those before it are there. A call that has not begun
    /// when its turn is cancelled never does.
    pub async fn run_all(&mut self, calls: Vec<Call>, mut done: impl FnMut(&Call, ToolOutput)) {
        self.refresh();
        let layers = self.layers.layers();
        let mut calls =
            calls.into_iter().map(|call| (find(&self.tools, self.hand_in.as_ref(), &call), call)).peekable();
        while let Some(first) = calls.next() {
            let shared = |(tool, _): &(Found, Call)| tool.concurrency() == Concurrency::Shared;
            let mut group = vec![first];
            if shared(&group[0]) {
                while let Some(next) = calls.next_if(shared) {
                    group.push(next);
                }
            }
            let running = group.into_iter().map(|(tool, call)| {
                let kept = call.clone();
                run_one(layers, tool, call).map(move |output| (kept, output))
            });
            let mut results = stream::iter(running).buffered(PARALLEL_LIMIT);
            while let Some((call, output)) = results.next().await {
                done(&call, output);
            }
        }
    }

    fn refresh(&mut self) {
        let version = self.realm.version();
        if self.seen == Some(version) {
            return;
        }
        let filters = self.realm.all_registered::<ToolFilter>();
        let hand_in = self.realm.get::<HandIn>().map(|hand_in| hand_in.0.clone());
        let admitted = |name: &str| filters.iter().all(|filter| filter.admits(name));
        let replaced = |name: &str| hand_in.as_ref().is_some_and(|tool| *tool.schema().name == *name);
        let tools = self.realm.all_named::<dyn Tool>().into_iter().map(|(_, tool)| tool);
        let tools = tools.filter(|tool| admitted(&tool.schema().name) && !replaced(&tool.schema().name));
        let tools: Vec<_> = tools.chain(hand_in.clone()).collect();
        let same = tools.len() == self.tools.len() && tools.iter().zip(&*self.tools).all(|(a, b)| Arc::ptr_eq(a, b));
        if !same {
            self.schemas = tools.iter().map(|tool| tool.schema().clone()).collect();
            self.tools = tools.into();
        }
        self.hand_in = hand_in;
        // Last: a schema that panics is asked for again.
        self.seen = Some(version);
    }
}

/// The tool that a call names, or the answer that there is none.
#[derive(Clone)]
enum Found {
    Tool(Arc<dyn Tool>),
    HandIn(Arc<dyn Tool>),
    Nothing(ToolOutput),
}

impl Found {
    fn concurrency(&self) -> Concurrency {
        match self {
            Self::Tool(tool) | Self::HandIn(tool) => tool.concurrency(),
            Self::Nothing(_) => Concurrency::Shared,
        }
    }
}

fn find(tools: &[Arc<dyn Tool>], hand_in: Option<&Arc<dyn Tool>>, call: &Call) -> Found {
    match tools.iter().find(|tool| tool.schema().name == call.name) {
        Some(tool) if hand_in.is_some_and(|hand_in| Arc::ptr_eq(hand_in, tool)) => Found::HandIn(tool.clone()),
        Some(tool) => Found::Tool(tool.clone()),
        None => {
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.schema().name).collect();
            let name: String = call.name.chars().take(64).collect();
            let text = format!("there is no tool named `{name}`; there are: {}", names.join(", "));
            Found::Nothing(ToolOutput::error(code::UNKNOWN_TOOL, text))
        }
    }
}

async fn run_one(layers: &[Arc<dyn context::Around<ToolExecution>>], found: Found, call: Call) -> ToolOutput {
    let (tool, ends) = match found {
        Found::Tool(tool) => (tool, false),
        Found::HandIn(tool) => (tool, true),
        Found::Nothing(answer) => return answer,
    };
    let (name, cancelled) = (call.name.clone(), call.cancelled.clone());
    if cancelled.is_cancelled() {
        return ToolOutput::error(code::CANCELLED, format!("`{name}` was cancelled before it ran"));
    }
    let running = AssertUnwindSafe(through(layers, &*tool, call)).catch_unwind();
    let grace = async {
        cancelled.cancelled().await;
        tokio::time::sleep(tool.cancel_grace()).await;
    };
    let mut output = match future::select(std::pin::pin!(running), std::pin::pin!(grace)).await {
        future::Either::Left((Ok(output), _)) => output,
        future::Either::Left((Err(_), _)) => {
            tracing::error!(tool = %name, "a tool panicked");
            ToolOutput::error(code::PANICKED, format!("`{name}` failed: it panicked; this is a bug in the tool"))
        }
        future::Either::Right(_) => ToolOutput::error(code::CANCELLED, format!("`{name}` was cancelled")),
    };
    limit_output(&mut output);
    if ends && !output.is_error() {
        output.then = Then::EndTurn;
    }
    output
}

async fn through(layers: &[Arc<dyn context::Around<ToolExecution>>], tool: &dyn Tool, call: Call) -> ToolOutput {
    let end = |call: Call| -> context::Boxed<'_, ToolOutput> { Box::pin(async move { tool.call(&call).await }) };
    context::Next::over(layers, &end).run(call).await
}
