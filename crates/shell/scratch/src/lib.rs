//! A session's own place for what is temporary.
//!
//! *Owns:* a directory below the machine's temporary one, what is where in it, and its end: with its session, or, where
//! the process was killed, when another process makes one; which places all of a user's are in.
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
//!
//! All directories of a user's sessions are in one, so that whoever holds commands can keep them from all of it with one
//! rule, also from those that are made later; see [`places`]. It goes with the last of them, unless somebody has locked it
//! (`flock`, shared) because a rule is about it.

mod held;
mod made;
mod passing;
mod place;
mod remove;
mod sweep;

pub use made::Scratch;
pub use passing::Passing;
pub use place::{Apart, is_place, places};
