//! Asking a person for one call, and never on behalf of a child.
//!
//! *Owns:* `approval/policy`, the audit pair of every ask, the answerers, the pin that a child is given, the one way from
//! the arguments of a call to a grant.
//! *Never:* a stored grant, an answerer consulted under `never`, an ask without its pair, a front door by name.
//!
//! ```
//! # use std::sync::Arc; use context::{Plugins, Scope}; use session::*; use user_approval::*;
//! struct Yes;
//! #[async_trait::async_trait]
//! impl Answerer for Yes {
//!     fn owns(&self, _: SessionId) -> bool { true }
//!     async fn answer(&self, _: &Question) -> Option<Answer> { Some(Answer::AllowOnce) }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! let sessions = Sessions::new();
//! app.provide(sessions.clone())?;
//! Plugins::new().with(UserApprovalPlugin, Config { default: Policy::Ask }).start(&app).await?;
//! let approval = app.get::<Approval>().unwrap();
//! app.own(approval.answer_with(Arc::new(Yes)))?;
//! let parent = sessions.create("/home/me/project");
//! parent.append(TurnStart { turn: 1 })?;
//! let ask = || Ask::new("write", "write /etc/hosts under danger-full-access");
//! assert_eq!(approval.request(&parent, ask(), app.cancelled()).await?, Outcome::AllowedOnce);
//! let child = Session::delegated(Delegation::capture(&parent)?, Seed::Fresh);
//! child.append(TurnStart { turn: 1 })?;
//! assert_eq!(approval.request(&child, ask(), app.cancelled()).await?, Outcome::Rejected);
//! # app.close().await?; Ok(()) }
//! ```

pub mod escalation;

mod answerers;
mod approval;
mod events;
mod plugin;

pub use answerers::{Answer, Answerer, Question};
pub use approval::{Approval, Ask, AskError};
pub use escalation::{Escalation, escalate};
pub use events::{ApprovalAsked, ApprovalDecided, Outcome, Policy, PolicyCause, PolicySet, RequestId};
pub use plugin::{Config, UserApprovalPlugin};
