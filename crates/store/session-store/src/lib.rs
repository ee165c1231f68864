//! Where sessions are kept.
//!
//! *Owns:* the seam [`SessionStore`] (looked up as `dyn SessionStore`), its errors, a store in memory, and, behind the
//! feature `testing`, the suite of behaviours that every store passes.
//! *Never:* a file, a format on disk, or a decision about what a log means: that is `session`'s.
//!
//! A session is leased while a process may write it, and readers are never in the way. It is kept from its first flush
//! on, whole or not at all: one that is dropped before leaves nothing.
//!
//! ```
//! # use session::*; use session_store::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (store, sessions) = (MemoryStore::default(), Sessions::new());
//! let session = sessions.create("/home/me/project");
//! store.create(&session).await?;
//! session.append(SessionTitle { title: "a try".into(), source: "user".into() })?;
//! assert!(matches!(store.read(&sessions.vocabulary(), session.id()).await, Err(ReadError::NotFound(_))));
//!
//! session.flush().await?;
//! assert!(matches!(store.open(&sessions, session.id()).await, Err(OpenError::Busy(_))));
//! assert_eq!(store.read(&sessions.vocabulary(), session.id()).await?.decoded.log().len(), 1);
//!
//! session.release().await?;
//! let opened = store.open(&sessions, session.id()).await?;
//! assert_eq!(&*opened.session.latest::<SessionTitle>().unwrap().title, "a try");
//! # Ok(()) }
//! ```

mod error;
mod memory;
mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use error::{Busy, CreateError, Damage, Fault, ListError, NotFound, OpenError, ReadError, RemoveError};
pub use memory::MemoryStore;
pub use store::{Opened, Reading, Repair, Row, SessionStore, Summary};
