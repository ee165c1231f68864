//! An agent: what drives a session.
//!
//! *Owns:* transactional creation, the handle and its owner, the inbox and its claims, cancellation, the live agents, the
//! places where behaviour is extended.
//! *Never:* the loop itself (an [`AgentDriver`] is looked up), policy, delegation, files; a child that outlives its owner; a
//! state change in a caller's future.
//!
//! [`Agents::create`] makes all of an agent or nothing that anyone has seen. What it returns is the owner; everyone else
//! holds an [`AgentRef`]:
//!
//! ```
//! # use std::sync::Arc; use agent::*; use context::{Boxed, Scope}; use llm::Route;
//! struct Echo;
//! impl AgentDriver for Echo {
//!     fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
//!         Box::pin(async move {
//!             while let Some(opening) = driven.next_turn().await {
//!                 let said = opening.messages[0].message.clone();
//!                 driven.settle(&opening, TurnOutcome::completed(1, Some(said)));
//!             }
//!         })
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! app.provide::<dyn AgentDriver>(Arc::new(Echo))?;
//! let agents = Agents::new(&app);
//! let session = session::Sessions::new().create("/home/me/project");
//! let spec = Spec::new(session, Profile::of(Route::new("offline", "script")));
//! let agent = agents.create(&app, spec).await?;
//! let outcome = agent.followup("hello")?.outcome().await;
//! assert_eq!(outcome.output.unwrap().text(), "hello");
//! agent.dispose().await?;
//! assert!(agents.get(agent.id()).is_none());
//! # app.close().await?; Ok(()) }
//! ```

mod agents;
mod driver;
mod extend;
mod handle;
mod inbox;
mod plugin;
mod sync;

pub use agents::{AgentGone, AgentPublished, AgentSetup, Agents, CreateError, Profile, Spec};
pub use driver::{AgentDriver, Driven, Opening};
pub use extend::{
    BeforeStep, FailedRequest, Live, ModelRequest, OnRequestError, OnTurnStop, Recourse, Rejected, RequestInput,
    Signal, StepInput, StopVerdict, StoppingTurn,
};
pub use handle::{Agent, AgentRef, Inbox, LogHold};
pub use inbox::{Input, PENDING_LIMIT, Receipt, SendError, TurnOutcome};
pub use plugin::AgentsPlugin;
