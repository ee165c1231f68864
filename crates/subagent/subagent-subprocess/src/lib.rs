//! What every provider of children in other processes shares.
//!
//! *Owns:* the checks before such a child is started, its environment, how its whole process tree is held and ended, what is
//! told of a child that failed, and the record that an operator left one unconfined.
//! *Never:* a protocol, a prompt, the child's own configuration, what a sandbox mode means.
//!
//! A provider does three things with this. It [prepares](prepare) a start, which checks the directory and the program, and
//! decides from the *captured* override of the parent how the tree is held. It [spawns](Child::spawn) the child and talks to
//! it through talk. It [ends](Child::end) it, whatever came of it, and nothing of its tree is left.
//!
//! ```no_run
//! # use subagent::{RunResult, Start, StartError, Started, SubagentProvider}; use subagent_subprocess::*;
//! struct Cat(Settings);
//!
//! #[async_trait::async_trait]
//! impl SubagentProvider for Cat {
//!     fn inherits_parent_context(&self) -> bool { INHERITS_PARENT_CONTEXT }
//!     async fn start(&self, start: Start) -> Result<Started, StartError> {
//!         let prepared = prepare(&start, &self.0).await?;
//!         let (child, mut talk) = Child::spawn(prepared.spawn).map_err(|error| error.of(&start.provider))?;
//!         let (prompt, graces) = (start.request.prompt.clone(), self.0.graces);
//!         Ok(Started::elsewhere(async move {
//!             let _ = talk.input.write_all(prompt.as_bytes()).await;
//!             drop(talk.input);
//!             let said = talk.output.next().await.unwrap_or_default();
//!             child.end(&graces).await;
//!             RunResult::completed(vec![llm::Content::text(String::from_utf8_lossy(&said))])
//!         }))
//!     }
//! }
//! ```
//!
//! # How it is held
//!
//! | the parent's log, at the call | `confine` | the child |
//! |---|---|---|
//! | `read-only` or `workspace-write` | `inherit` | confined by the kernel under that mode's file rules, around the *parent's* root; refused where that cannot be had |
//! | `read-only` or `workspace-write` | `none` | not confined, which the parent's log says first ([`Unconfined`]) |
//! | `danger-full-access`, or no override | either | not confined |
//!
//! Confined or not, its processes are one tree with one owner: they end with it, also when the harness is killed. With
//! process namespaces that is certain; without, and for children that are not confined, it is as good as it can be.

mod child;
mod diagnostics;
mod hold;
mod program;
mod record;
mod refused;
mod settings;

pub use child::{Child, Ending, Step, Talk};
pub use diagnostics::{DIAGNOSTICS_LIMIT, Diagnostics};
pub use hold::{Evidence, Held, Open, Prepared, Ready, prepare};
pub use record::Unconfined;
pub use refused::{BadSettings, Refused};
pub use settings::{Confine, Graces, LONGEST_GRACES, Settings};

/// What every such provider says of itself: its children do not know the conversation. Nor does one offer any
/// [`Capability`](subagent::Capability).
pub const INHERITS_PARENT_CONTEXT: bool = false;
