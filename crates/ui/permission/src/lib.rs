//! Permission presets: one choice that sets a session's sandbox mode and its approval policy.
//!
//! *Owns:* the table of presets, `permission/preset`, the order in which a choice turns the two knobs, the name of what is
//! in force.
//! *Never:* a policy of its own (the knobs' events decide), enforcement, a session that begins with its parent's scope.
//!
//! A choice is told before what it causes, and turns only what changes. At no instant in between does the session allow
//! what neither the old setting nor the new one allows: the sandbox narrows first and widens last. So a delegation that
//! is captured in the middle of a choice hands down the old mode or the new one.
//!
//! ```
//! # use context::{Plugins, Scope}; use permission::*; use sandbox::Mode; use session::Sessions;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! let plugins = Plugins::new()
//!     .with(session::SessionsPlugin, ())
//!     .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::ReadOnly })
//!     .with(user_approval::UserApprovalPlugin, user_approval::Config { default: user_approval::Policy::Ask })
//!     .with(PermissionPlugin, Config::default());
//! plugins.start(&app).await?;
//! let permission = app.get::<Permission>().unwrap();
//! let session = app.get::<Sessions>().unwrap().create("/home/me/project");
//! permission.begin(&session, "workspace-write")?;
//! assert_eq!(permission.current(&session).to_string(), "workspace-write");
//! session.append(sandbox_policy::ModeSet::by_user(Mode::DangerFullAccess))?;
//! assert_eq!(permission.current(&session), Current::Custom);
//! permission.choose(&session, "read-only")?;
//! assert_eq!(permission.current(&session).to_string(), "read-only");
//! # app.close().await?; Ok(()) }
//! ```

mod command;
mod permission;
mod plugin;
mod presets;

pub use permission::{ChooseError, Current, Permission, PresetChosen};
pub use plugin::{Config, PermissionPlugin};
pub use presets::{CUSTOM, Preset, Presets, PresetsError};
