//! Proof of delegation from logs alone: what a session may do and which events decided that, and whether every child was
//! held to its parent's scope.
//!
//! *Owns:* what an audit looks for, the way from an override back to where it came from, the walk over a tree of logs.
//! *Never:* a log that is written or repaired, another witness than logs, how anything is shown.
//!
//! Somebody who rewrites all logs consistently is not found: an audit compares logs with each other, and with nothing else.
//! What is found otherwise is one [`Code`] a kind.
//!
//! ```
//! # use session::*; use sandbox::Mode; use sandbox_policy::*; use policy_audit::*;
//! # use context::{Plugins, Scope as Owner}; use subagent::{ChildMode, Descriptor, DESCRIPTOR_VERSION};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Owner::root("app");
//! # let sessions = Sessions::new();
//! # app.provide(sessions.clone())?;
//! # Plugins::new()
//! #     .with(SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
//! #     .with(user_approval::UserApprovalPlugin, user_approval::Config { default: user_approval::Policy::Ask })
//! #     .start(&app).await?;
//! # let descriptor = Descriptor {
//! #     version: DESCRIPTOR_VERSION, mode: ChildMode::OneShot, provider: "spawn".into(), label: None, model: None,
//! #     persona: None, tool_filter: None, max_depth: None, approval: None,
//! # };
//! let parent = sessions.create("/home/me/project");
//! parent.append(ModeSet::by_user(Mode::ReadOnly))?;
//! let child = Session::delegated(Delegation::capture(&parent)?, Seed::Fresh);
//! child.append(descriptor)?;
//! assert!(check_child(Some(&parent.snapshot()), &child.snapshot()).is_empty());
//!
//! child.append(ModeSet::by_user(Mode::DangerFullAccess))?;
//! let found = check_child(Some(&parent.snapshot()), &child.snapshot());
//! assert_eq!((found[0].code, found[0].seq), (Code::WideningSwitch, Some(3)));
//! # app.close().await?; Ok(()) }
//! ```

mod audit;
mod child;
mod digest;
mod explain;
mod finding;
mod knob;
mod logs;
mod named;
mod own;
mod seed;
mod top;
mod tree;

pub use audit::{AuditError, Audited, Report, Scope, Unknown, audit};
pub use child::{check_child, check_top_level};
pub use explain::{Branch, Branches, ExplainError, Explained, Link, Ruling, explain, explain_tree};
pub use finding::{Code, Finding};
pub use knob::{Knob, decided, name_of};
pub use logs::{Logs, Stored};
pub use tree::Unplaced;
