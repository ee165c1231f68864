//! The loop that drives an agent.
//!
//! *Owns:* turns and steps: what enters the conversation, one model request and its tools after another, cancellation,
//! checkpoints, and the events that tell all of it.
//! *Never:* behaviour that a layer on a chain of `agent` or `tools` could add; policy; a model or a tool by name.
//!
//! ```
//! # use std::sync::Arc; use agent::*; use context::{Plugins, Scope}; use llm::*;
//! # struct Hi;
//! # impl LlmAdapter for Hi { fn reply(&self, _: Request) -> Reply { replied([Chunk::Text("hi".into()), Chunk::End(Finish::Stop)]) } }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! app.register::<dyn LlmAdapter>("test", Arc::new(Hi))?;
//! Plugins::new().with(agent_loop::AgentLoop, ()).start(&app).await?;
//! let session = session::Sessions::new().create("/home/me/project");
//! let spec = Spec::new(session, Profile::of("test/hi".parse()?));
//! let agent = Agents::new(&app).create(&app, spec).await?;
//! let outcome = agent.followup("hello")?.outcome().await;
//! assert_eq!(outcome.output.unwrap().text(), "hi");
//! # agent.dispose().await?; app.close().await?; Ok(()) }
//! ```

mod ask;
mod hand;
mod turn;

use std::sync::Arc;

use agent::{AgentDriver, Driven};
use async_trait::async_trait;
use context::{BoxError, Boxed, Ctx, Plugin};

use crate::hand::Hand;

/// The most steps of one turn. A model that still asks for tools then is going in circles.
pub const STEP_LIMIT: u32 = 500;

/// The plugin that provides the loop as the app's [`AgentDriver`].
pub struct AgentLoop;

#[async_trait]
impl Plugin for AgentLoop {
    type Config = ();

    fn name(&self) -> &'static str {
        "agent-loop"
    }

    async fn apply(&self, ctx: &Ctx, (): ()) -> Result<(), BoxError> {
        Ok(ctx.provide::<dyn AgentDriver>(Arc::new(Driver))?)
    }
}

struct Driver;

impl AgentDriver for Driver {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        Box::pin(Hand::new(driven).serve())
    }
}
