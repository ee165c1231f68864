//! A fence around an agent's files.
//!
//! *Owns:* the [`FileSystem`](fs::FileSystem) that enforces a session's sandbox mode inside our own process.
//! *Never:* what a mode means (`sandbox`), which mode holds (whoever hands in the
//! [`ModeSource`](sandbox::ModeSource)), a path that is checked by its text and then opened by its name.
//!
//! The root is opened once, as a handle. Every path is resolved beneath that handle by the kernel (`openat2`), and what
//! was resolved is then checked by what it *is* (device and inode, up its parents), never by what it is called. A file is
//! written under a temporary name in its own directory and renamed into place there.
//!
//! ```
//! # use std::sync::Arc; use context::Scope; use fs::{FileSystem, MAX_FILE_BYTES}; use sandbox::*;
//! # use fs_sandbox::Fence;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let agent = Scope::root("agent");
//! let fence = Fence::open(Workspace::new(dir.path()), Arc::new(Mode::WorkspaceWrite), agent.clone())?;
//! agent.provide::<dyn FileSystem>(Arc::new(fence))?;
//!
//! let files = agent.get::<dyn FileSystem>().expect("just provided");
//! files.write("src/a.txt", b"hello".to_vec(), None).await?;
//! assert_eq!(files.read_text("src/a.txt", MAX_FILE_BYTES).await?, "hello");
//! let refused = files.write("../b.txt", b"hello".to_vec(), None).await.unwrap_err();
//! assert_eq!(refused.denial().map(|denial| denial.operation), Some(Operation::Write));
//! # agent.close().await?; Ok(()) }
//! ```
//!
//! `rustix` gives `openat2` as the kernel has it. `cap-std`, which confines too, resolves names itself where the kernel
//! cannot, follows links that a write here must see, and has no word on magic links; with it, each open would still
//! need the checks below.
//!
//! # What it does not do
//!
//! A directory that an *unconfined* process moves out of the root, in the instant between the last look at it and the
//! rename inside it, takes the file along. Extended attributes and access lists of a replaced file are not kept, nor is
//! its set-user-id bit. Nothing is synced to the disk.
//!
//! What git is led to is looked for before each write, in the repository's configuration, that of a repository around the
//! root and the person's own; where that cannot be followed, nothing is written. Not followed are `~name/` (somebody else's
//! home), configuration from the environment of a shell, and bare and nested repositories.

mod asked;
mod fence;
mod git;
mod guard;
mod handle;
mod held;
mod lands;
mod plugin;
mod read;
mod write;

pub use fence::{Fence, Fences, OpenError};
pub use git::GitUser;
pub use plugin::{Config, FsSandboxPlugin, Tmp};
