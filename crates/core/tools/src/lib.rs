//! Tools that a model may call.
//!
//! *Owns:* the tool trait, typed arguments and their schema, the guarded pipeline around every call, bounded parallel
//! running with results in the model's order, filters, output limits, progress.
//! *Never:* a tool of its own, policy, the log (the loop writes it).
//!
//! A tool is a type with arguments; its schema is derived, and a model's mistake in them is an error that it can read:
//!
//! ```
//! # use std::borrow::Cow; use context::Scope; use tools::*;
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args { /** Who is greeted. */ name: String }
//! struct Greet;
//! #[async_trait::async_trait]
//! impl TypedTool for Greet {
//!     type Args = Args;
//!     fn name(&self) -> &str { "greet" }
//!     fn description(&self) -> Cow<'_, str> { "Greets somebody.".into() }
//!     async fn run(&self, args: Args, _: &Call) -> ToolOutput { ToolOutput::text(format!("hello, {}", args.name)) }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! tools::register(&app, Greet)?;
//! let session = session::Sessions::new().create("/home/me");
//! let mut runner = Runner::new(app.realm());
//! let call = Call::new(&app, session, "greet", r#"{"name":"Ada"}"#);
//! let greeted = runner.run(call).await;
//! assert_eq!(greeted.to_text(), "hello, Ada");
//! # app.close().await?; Ok(()) }
//! ```

mod call;
mod filter;
mod hand_in;
mod limit;
mod output;
mod runner;
mod tool;

pub use call::{Call, ToolProgress};
pub use filter::ToolFilter;
pub use hand_in::HandIn;
pub use limit::{OUTPUT_LIMIT, limit_text};
pub use output::{Then, ToolOutput, code};
pub use runner::{PARALLEL_LIMIT, Runner, ToolExecution};
pub use tool::{Concurrency, Tool, TypedTool, register, typed};
