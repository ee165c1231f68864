//! Delegating a task to a child agent: the seam between who asks and who runs it.
//!
//! *Owns:* the capture at the call, the checks, the run and its announcements, the composition that in-process children
//! share, the descriptor, the denials that a parent is told of.
//! *Never:* a provider by name, policy (the contributors'), a provider's word that it captured in time.
//!
//! A provider cannot capture too late, because it does not capture at all: [`Subagents::start`] is a plain function that
//! does it at the call and hands the [`Delegation`](session::Delegation) over. That is why [`SubagentProvider::start`] may
//! be an ordinary `async fn`.
//!
//! ```
//! # use std::sync::Arc; use context::Scope; use subagent::*;
//! struct Elsewhere;
//! #[async_trait::async_trait]
//! impl SubagentProvider for Elsewhere {
//!     fn inherits_parent_context(&self) -> bool { false }
//!     async fn start(&self, start: Start) -> Result<Started, StartError> {
//!         let echo = start.request.prompt.clone();
//!         Ok(Started::elsewhere(async move { RunResult::completed(vec![llm::Content::text(&*echo)]) }))
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! let subagents = Subagents::new(&app, Limits::default());
//! app.own(subagents.register("elsewhere", Arc::new(Elsewhere))?)?;
//! assert!(subagents.register("elsewhere", Arc::new(Elsewhere)).is_err(), "names are unique");
//! # app.close().await?; Ok(()) }
//! ```
//!
//! Nobody can start a child without a capture, and a start that was built is used once:
//!
//! ```compile_fail,E0382
//! # use subagent::*;
//! async fn twice(provider: &dyn SubagentProvider, start: Start) {
//!     let one = provider.start(start).await;
//!     let two = provider.start(start).await;
//! }
//! ```
//!
//! ```compile_fail,E0063
//! # use subagent::*;
//! fn uncaptured(ctx: context::Ctx, run: RunId, parent: agent::AgentRef, request: Request) -> Start {
//!     Start { ctx, run, provider: "mine".into(), parent, request }
//! }
//! ```
//!
//! The composition consumes it:
//!
//! ```compile_fail,E0382
//! # use subagent::*;
//! async fn composed(agents: &agent::Agents, start: Start) {
//!     let child = compose(agents, start, session::Seed::Fresh).await;
//!     let again = session::Session::delegated(start.delegation, session::Seed::Fresh);
//! }
//! ```

mod budget;
mod child;
mod denials;
mod descriptor;
mod filter;
mod persona;
mod plugin;
mod progress;
mod provider;
mod request;
mod run;
mod start;
mod structured;
#[cfg(feature = "testing")]
pub mod testing;

pub use budget::{Budget, BudgetReached, BudgetSpent, Limits};
pub use child::{Composed, compose};
pub use denials::{BackgroundReport, ChildDenial, DENIALS_SHOWN, DelegationReport, Denials, denial_of, denials_in};
pub use descriptor::{ApprovalAbsent, ChildMode, DESCRIPTOR_VERSION, Descriptor};
pub use filter::UnknownTools;
pub use persona::{PERSONA_VARIABLES, Persona, PersonaError};
pub use plugin::{Config, SubagentPlugin};
pub use progress::{CallState, ChildProgress, Doing};
pub use provider::{Capability, Start, StartError, Started, SubagentProvider};
pub use request::Request;
pub use run::{ChildEnded, ChildStarted, Run, RunId, RunResult, Starting, StopReason};
pub use start::Subagents;
pub use structured::{OutputSchema, RESULT_TOOL, SchemaError};
