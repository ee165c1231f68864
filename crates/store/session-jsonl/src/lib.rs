//! Keeps sessions as files: `<id>.jsonl`, a header line and then one event a line.
//!
//! *Owns:* the files and what is durable when, the lease (`<id>.lock`), torn tails, the threads that wait for the disk.
//! *Never:* what an event means, or a write behind bytes that are not a whole line.
//!
//! - A log appears with its whole first batch or not at all: it is written as `<id>.jsonl.new`, synced, and renamed.
//! - A flush is one `fdatasync`; all that wait for the same session while one runs share the next. What failed is
//!   written again by the next flush, from the last place that is known to be on stable storage.
//! - A lock file that is let go of is kept, locked, as `spare-<pid>.lock` and renamed for the next session: while a disk is
//!   being synced, making a file costs more than anything else here. One a process, until its store is closed.
//! - Nothing is kept open for an idle session but its lock. A few files, those used last, stay open from batch to batch.
//! - The seed of a fork is copied from its parent's file, if that is certain to hold it; otherwise it is written.
//! - Opening a log for writing puts a torn tail aside as `<id>.jsonl.torn-<time>`. Damage before it is refused, with
//!   its line. Reading never writes and never waits for a writer.
//!
//! ```
//! # use session::*; use session_store::*; use session_jsonl::JsonlStore;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! let store = JsonlStore::new(home.path().join("sessions"));
//! let sessions = Sessions::new();
//! let session = sessions.create("/home/me/project");
//! store.create(&session).await?;
//! session.append(SessionTitle { title: "a try".into(), source: "user".into() })?;
//! assert!(!store.path(session.id()).exists(), "nothing before the first flush");
//! session.flush().await?;
//! session.release().await?;
//!
//! let text = std::fs::read_to_string(store.path(session.id()))?;
//! assert!(text.trim_end().ends_with(r#""type":"session/title","data":{"title":"a try","source":"user"}}"#));
//! let opened = store.open(&sessions, session.id()).await?;
//! assert!(opened.repairs.is_empty());
//! store.close().await;
//! # Ok(()) }
//! ```

mod disk;
mod log;
mod names;
mod plugin;
mod pool;
mod reading;
#[cfg(test)]
mod simulation;
mod store;
mod sweep;
mod writer;

pub use plugin::{Config, SessionJsonl};
pub use store::JsonlStore;
