//! The shared context that everything plugs into.
//!
//! *Owns:* scopes (who closes what), realms (where look-ups go), guards, named registries, events, chains, plugins.
//! *Never:* global state, a task outside a scope, a lock held over a callback or an await.
//!
//! An **owner** and a **realm** are different things. Closing a [`Scope`] closes what it owns, newest first; looking
//! something up walks its [`Realm`]. A child agent is *owned* by its parent's run and *looks up* the app, so nothing that
//! a parent registered for itself reaches its child by accident:
//!
//! ```
//! # use std::sync::Arc; use context::Scope;
//! trait Greet: Send + Sync { fn hi(&self) -> &'static str; }
//! struct En; impl Greet for En { fn hi(&self) -> &'static str { "hello" } }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let app = Scope::root("app");
//! let parent = app.child_in("parent", app.realm().nested()).unwrap();
//! parent.provide::<dyn Greet>(Arc::new(En)).unwrap();
//! let child = parent.child_in("child", app.realm().nested()).unwrap();
//! assert_eq!(parent.get::<dyn Greet>().unwrap().hi(), "hello");
//! assert!(child.get::<dyn Greet>().is_none(), "owned by the parent, but looks up the app");
//! app.close().await.unwrap();
//! assert!(child.provide::<dyn Greet>(Arc::new(En)).is_err(), "closing is a typed error, not a leak");
//! # }
//! ```

mod chain;
mod close;
mod feed;
mod guard;
mod plugin;
mod realm;
mod registry;
mod scope;
#[cfg(shuttle)]
#[doc(hidden)]
pub mod shuttled;
mod sync;

pub use chain::{Around, Chain, End, Next};
pub use close::{CloseError, Failure};
pub use feed::{Emitter, Middleware};
pub use guard::{Listeners, Registration};
pub use plugin::{BootError, Need, Plugin, Plugins, UnknownPlugin};
pub use realm::{AlreadyProvided, Realm};
pub use registry::{Change, NameTaken, Registry};
pub use scope::{Closing, Ctx, ProvideError, RegisterError, Scope, Stop};

/// An owned, sendable future.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Any error, for reports.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
