//! Files, for a model: `read`, `write`, `edit`, `list`, `glob`, `grep`.
//!
//! *Owns:* the six tools, what a model sees of a file, the exactness of an edit, what a search leaves out and its limits.
//! *Never:* a path (the provider resolves it), confinement (the provider enforces it), the answer to an ask.
//!
//! ```
//! # use std::sync::Arc; use context::{Plugins, Scope}; use fs::FileSystem; use sandbox::{Mode, Workspace}; use tools::*;
//! # use tool_fs::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let app = Scope::root("app");
//! Plugins::new().with(FsTools, Config::default()).start(&app).await?;
//! let fence = fs_sandbox::Fence::open(Workspace::new(dir.path()), Arc::new(Mode::ReadOnly), app.clone())?;
//! app.provide::<dyn FileSystem>(Arc::new(fence))?;
//!
//! let session = session::Sessions::new().create("/home/me");
//! let call = Call::new(&app, session, "write", r#"{"path":"notes.md","content":"hello"}"#);
//! let denied = Runner::new(app.realm()).run(call).await;
//! assert_eq!(denied.error.as_deref(), Some(code::SANDBOX_DENIED));
//! assert!(denied.to_text().starts_with("sandbox denied: write "));
//! # app.close().await?; Ok(()) }
//! ```

mod access;
mod change;
mod glob;
mod grep;
mod ignored;
mod lines;
mod list;
mod pattern;
mod read;
mod replace;
mod search;
mod walk;

use async_trait::async_trait;
use context::{BoxError, Ctx, Plugin};
use serde::Serialize;
use tools::{Tool, typed};
use user_approval::Escalation;

/// Registers the tools for every agent of the app.
pub struct FsTools;

/// How the tools are offered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Whether `write` and `edit` let the model ask for more.
    pub escalation: Escalation,
}

/// What a write or an edit did, for front doors: the meta of its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChanged {
    /// The file, absolute.
    pub path: String,
    /// Whether it is new.
    pub created: bool,
    /// Its size now.
    pub bytes: u64,
    /// The change as a unified diff. `None` where it is not text, too long, or the former content was too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

#[async_trait]
impl Plugin for FsTools {
    type Config = Config;

    fn name(&self) -> &'static str {
        "tool-fs"
    }

    async fn apply(&self, ctx: &Ctx, config: Config) -> Result<(), BoxError> {
        let Config { escalation } = config;
        for tool in [
            typed(read::Read),
            escalation.offering(typed(change::Write { escalation })),
            escalation.offering(typed(change::Edit { escalation })),
            typed(list::List),
            typed(glob::Glob),
            typed(grep::Grep),
        ] {
            ctx.register::<dyn Tool>(tool.schema().name.clone(), tool)?;
        }
        Ok(())
    }
}
