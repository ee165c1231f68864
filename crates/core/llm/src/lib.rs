//! Talking to language models: what is said, how a reply streams back, and the seam that adapters fill.
//!
//! *Owns:* messages, requests, streamed chunks, usage, errors, routes (`provider/model`), the assembly of a reply.
//! *Never:* HTTP, keys, a provider by name, retries (an adapter's), history (a session's).
//!
//! An adapter is registered by name; a route says which one serves, and with which model:
//!
//! ```
//! # use std::sync::Arc; use context::Scope; use llm::*;
//! struct Parrot;
//! impl LlmAdapter for Parrot {
//!     fn reply(&self, request: Request) -> Reply {
//!         let text = request.messages.last().map_or_else(String::new, |message| message.text());
//!         llm::replied([Chunk::Text(text.into()), Chunk::End(Finish::Stop)])
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! app.register::<dyn LlmAdapter>("parrot", Arc::new(Parrot))?;
//! let route: Route = "parrot/grey".parse()?;
//! let adapter = route.adapter(app.realm())?;
//! let mut request = Request::to(&*route.model);
//! request.messages.push(Arc::new(Message::user("hello")));
//! let message = Assembly::collect(adapter.reply(request)).await?.message;
//! assert_eq!(message.text(), "hello");
//! # app.close().await?; Ok(()) }
//! ```

mod assembly;
mod error;
mod message;
mod request;
mod route;

pub use assembly::{Assembled, Assembly};
pub use error::{LlmError, LlmErrorKind};
pub use message::{Content, Message, Role, ToolCall};
pub use request::{Chunk, Finish, LlmAdapter, Reply, Request, Sampling, ToolSchema, Usage, replied};
pub use route::{Route, RouteError, UnknownProvider};
