//! A session's own place for what is temporary.
//!
//! *Owns:* a directory below the machine's temporary one, what is where in it, and its end: with its session, or, where
//! the process was killed, when another process makes one.
//! *Never:* who may write in it (`sandbox`), what is written.
//!
//! ```
//! # use context::Scope; use scratch::Scratch;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let session = Scope::root("session");
//! let scratch = Scratch::make(&session)?;
//! std::fs::write(scratch.tmp().join("half"), "done")?;
//! session.close().await?;
//! assert!(!scratch.tmp().exists());
//! # Ok(()) }
//! ```
//!
//! Each directory holds a file that its process has locked for as long as it lives. The kernel lets go of the lock however
//! the process ends, and no other process can be taken for it. Whoever can take the lock may remove the directory; so a
//! killed process leaves one behind only until the next makes its first, which looks for such, a bounded number of them.

mod held;
mod made;
mod remove;
mod sweep;

pub use made::Scratch;
