//! The vocabulary of confinement: what a sandbox mode means, how a refusal reads, how a call asks for more.
//!
//! *Owns:* modes and their order, the [`Boundary`] that every enforcer takes a mode's meaning from, denials, escalation
//! requests and one-call grants, and the seam [`SandboxProvider`] for what holds commands.
//! *Never:* the file system (paths are only computed with here), an enforcer, a session's log, an approval.
//!
//! ```
//! use sandbox::{Denial, EscalationRequest, Mode, Network, Operation, Workspace};
//!
//! let workspace = Workspace::new("/home/ada/project").home("/home/ada/.tether");
//! let boundary = workspace.boundary(Mode::WorkspaceWrite);
//! assert_eq!(boundary.writable_roots(), [std::path::Path::new("/home/ada/project")]);
//! assert_eq!(boundary.network(), Network::Denied);
//!
//! let denial = Denial::new(Operation::Write, "/etc/passwd", Mode::WorkspaceWrite);
//! assert_eq!(denial.to_string(), "sandbox denied: write /etc/passwd (mode workspace-write)");
//!
//! let ask = EscalationRequest::from_args(Some("danger-full-access"), Some("install the hosts file"), boundary.mode())?;
//! assert_eq!(ask.expect("both were given").sandbox_permissions(), Mode::DangerFullAccess);
//! # Ok::<(), sandbox::EscalationError>(())
//! ```

mod boundary;
mod denial;
mod escalation;
mod mode;
mod protections;
mod provider;
#[cfg(feature = "testing")]
pub mod testing;

pub use boundary::{Boundary, NoException, Sight, Workspace};
pub use denial::{Denial, Operation, one_line};
pub use escalation::{EscalationError, EscalationRequest, Grant, MAX_JUSTIFICATION_CHARS, NotGranted, effective};
pub use mode::{Mode, ModeSource, Network, UnknownMode};
pub use protections::{Extent, Protected, ProtectionSource, Protections};
pub use provider::{CannotConfine, CommandLine, Confinement, Enforcement, Launch, SandboxProvider, Temp};
