//! An agent's files.
//!
//! *Owns:* the [`FileSystem`] seam, what its operations return and how they fail, the limits that bound them.
//! *Never:* how confinement is enforced (a provider's), the edit a tool makes, a path that was checked and is then
//! opened again by name.
//!
//! A provider is bound to one agent's session and found in that agent's realm. It enforces the session's sandbox mode
//! itself, so every caller is covered:
//!
//! ```
//! # use std::{path::Path, sync::Arc}; use context::Scope; use fs::*; use sandbox::{Denial, Grant, Mode, Operation};
//! struct Stone;
//! #[async_trait::async_trait]
//! impl FileSystem for Stone {
//! #   fn root(&self) -> &Path { Path::new("/w") }
//! #   fn mode(&self) -> Mode { Mode::ReadOnly }
//! #   async fn read(&self, path: &str, _: u64) -> Result<FileContent, FsError> {
//! #       Err(FsError::NotFound(self.root().join(path)))
//! #   }
//! #   async fn update(&self, _: &str, _: Change, _: Option<&Grant>) -> Result<WriteOutcome, FsError> { Err(FsError::Closing) }
//! #   async fn list(&self, _: &str, _: usize) -> Result<Listing, FsError> { Err(FsError::Closing) }
//! #   async fn directory(&self, _: &str) -> Result<Box<dyn Directory>, FsError> { Err(FsError::Closing) }
//! #   async fn stat(&self, _: &str) -> Result<Stat, FsError> { Err(FsError::Closing) }
//!     async fn write(&self, path: &str, _: Vec<u8>, _: Option<&Grant>) -> Result<WriteOutcome, FsError> {
//!         let target = self.root().join(path).display().to_string();
//!         Err(FsError::Denied(Denial::new(Operation::Write, target, self.mode()), Why::ReadOnly))
//!     }
//!     // …
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let agent = Scope::root("agent");
//! agent.provide::<dyn FileSystem>(Arc::new(Stone)).unwrap();
//! let files = agent.get::<dyn FileSystem>().unwrap();
//! let refused = files.write("notes.md", b"hello".to_vec(), None).await.unwrap_err();
//! let first = refused.to_string().lines().next().map(str::to_owned);
//! assert_eq!(first.as_deref(), Some("sandbox denied: write /w/notes.md (mode read-only)"));
//! # agent.close().await.unwrap(); }
//! ```

mod directory;
mod error;
mod file_system;

pub use directory::{Directory, Names};
pub use error::{FsError, Why};
pub use file_system::{
    Change, Entry, FileContent, FileSystem, Kind, Listing, MAX_FILE_BYTES, MAX_LIST_ENTRIES, MAX_PATH_BYTES,
    MAX_PREVIOUS_BYTES, Previous, Stat, WriteOutcome,
};
