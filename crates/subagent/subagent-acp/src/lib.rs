//! Children that speak the Agent Client Protocol: any agent, in a process of its own.
//!
//! *Owns:* the client's side of the protocol, version 1, with one child: its session, its one prompt, its questions, and what
//! is told of what it does.
//! *Never:* how a process is held or ended (`subagent-subprocess`), the child's own configuration, a file or a terminal for
//! the child, a human's answer.
//!
//! ```
//! # use context::{Plugins, Scope}; use subagent::Subagents; use subagent_acp::*; use subagent_subprocess::Settings;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # app.provide(session::Sessions::new())?;
//! let codex = Config {
//!     session_mode: Some("workspace-write".into()),
//!     ..Config::new("codex", Settings::new("/proc/self/exe", "codex-acp"))
//! };
//! let claude = Config::new("claude", Settings::new("/proc/self/exe", "claude-agent-acp"));
//! let plugins = Plugins::new()
//!     .with(subagent::SubagentPlugin, Default::default())
//!     .with(SubagentAcp, vec![codex, claude]);
//! plugins.start(&app).await?;
//! let names: Vec<_> = app.get::<Subagents>().unwrap().providers().list().into_iter().map(|(name, _)| name).collect();
//! assert_eq!(names, ["codex".into(), "claude".into()]);
//! # app.close().await?; Ok(()) }
//! ```
//!
//! # One child
//!
//! A start spawns the program, initializes it, authenticates if a method is configured, opens a session and sets its mode.
//! Whatever fails by then fails the start, and leaves no process. The prompt is sent once the child's start was announced.
//! What the child does is told as [`ChildProgress`](subagent::ChildProgress) meanwhile, and its last message is its output.
//! Then, or when nobody wants it any more, it is ended.
//!
//! | it answers the prompt with | the child is |
//! |---|---|
//! | `end_turn` | completed, whatever its message says |
//! | `max_tokens` | cut: `max-tokens` |
//! | `refusal` | refused: `refusal` |
//! | `cancelled` | aborted |
//! | `max_turn_requests`, or an error | failed: `error` |
//!
//! One that ends, hangs in its start, or writes what is no frame or too long a one has failed too. One that was cancelled
//! before it answered is aborted, whatever it answers.

mod activity;
mod answers;
mod calls;
mod client;
mod config;
mod failure;
mod live;
mod provider;
mod transcript;
mod wire;

pub use config::{BadConfig, Config, Permission};
pub use failure::{Failure, Stage};
pub use provider::{Acp, SubagentAcp};
pub use wire::LONGEST_FRAME;
