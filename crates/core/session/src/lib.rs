//! One append-only log with one id: an agent's durable state.
//!
//! *Owns:* the header, typed events, the log in memory, its projections, forks, reading, and the delegation boundary.
//! *Never:* files, policy, or a child session that skipped its parent's stamps.
//!
//! The log is the only state: model history, inbox and policy are computed from it. Appending is synchronous and in
//! memory; a [`Backing`] makes it durable.
//!
//! A new session with a parent comes from a [`Delegation`] and from nothing else, and consuming one stamps the child:
//!
//! ```
//! # use session::*;
//! let parent = Sessions::new().create("/home/me/project");
//! let child = Session::delegated(Delegation::capture(&parent)?, Seed::Fresh);
//! assert_eq!(child.header().lineage().unwrap().depth(), 1);
//! # Ok::<(), CaptureError>(())
//! ```
//!
//! The wrong programs do not compile. A delegation is used once:
//!
//! ```compile_fail,E0382
//! # use session::*;
//! fn twice(delegation: Delegation) {
//!     let one = Session::delegated(delegation, Seed::Fresh);
//!     let two = Session::delegated(delegation, Seed::Fresh);
//! }
//! ```
//!
//! It cannot be copied:
//!
//! ```compile_fail,E0277
//! # use session::*;
//! fn copied<T: Clone>() {}
//! copied::<Delegation>();
//! ```
//!
//! Nobody but the capture fills it, so nobody can leave the stamps out:
//!
//! ```compile_fail,E0451
//! # use session::*;
//! fn unstamped(other: Delegation) -> Delegation {
//!     Delegation { stamps: Stamps::default(), ..other }
//! }
//! ```
//!
//! A lineage cannot be written by hand:
//!
//! ```compile_fail,E0451
//! # use session::*;
//! fn forged(parent: &Session) -> Lineage {
//!     Lineage { parent: parent.id(), parent_seq: 0, origin: "subagent".into(), depth: 1 }
//! }
//! ```
//!
//! And only what the decoder read can be resumed:
//!
//! ```compile_fail,E0451
//! # use session::*;
//! fn invented(log: Snapshot) -> Decoded {
//!     Decoded { log, foreign: Vec::new() }
//! }
//! ```

mod backing;
mod clock;
mod decode;
mod delegation;
mod envelope;
mod event;
mod events;
mod header;
mod id;
mod inbox;
mod observe;
mod plugin;
mod recovery;
mod session;
mod sessions;
mod snapshot;
mod sync;
mod vocabulary;

pub use backing::{Backing, FlushError};
pub use clock::{Clock, SystemClock};
pub use decode::{DamagedPayload, DecodeError, Decoded};
pub use delegation::{CaptureError, Contributor, Delegation, Rank, Seed, Stamps};
pub use event::{Event, Payload, Typed};
pub use events::*;
pub use header::{FORMAT, Header, HeaderError, Lineage};
pub use id::{MessageId, SessionId, SessionIdError};
pub use plugin::SessionsPlugin;
pub use session::{AlreadyBacked, Closed, Session};
pub use sessions::{ResumeError, Sessions};
pub use snapshot::Snapshot;
pub use vocabulary::{TagTaken, Vocabulary};
