//! Models without an account: deterministic, offline, for demos, tests and benches.
//!
//! *Owns:* the language of [`Script`], the lines of [`FileScript`], the replies of [`Fixed`], the provider `offline`.
//! *Never:* a network, state between requests, randomness; a panic or a tool call that the script did not ask for.
//!
//! All three are stateless: what to answer follows from the request alone, namely from its last prompt and from how many
//! replies came after it. So one adapter serves a parent and all of its children at once, before and after a restart.
//!
//! The language is told by [`HELP`], which is also the answer to everything that is not a script, and in this crate's
//! README:
//!
//! ```
//! # use std::sync::Arc; use context::{Plugins, Scope}; use llm::*; use llm_script::*;
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! Plugins::new().with(LlmScript, Config::default()).start(&app).await?;
//! let route: Route = "offline/script".parse()?;
//!
//! let mut request = Request::to(route.model.clone());
//! let write = ToolSchema { name: "write".into(), description: "".into(), input_schema: Arc::default() };
//! request.tools = [write].into();
//! request.messages.push(Arc::new(Message::user(r#"write a.txt "hello"; say done"#)));
//! let reply = route.adapter(app.realm())?.reply(request);
//! let step = Assembly::collect(reply).await?.message;
//! let call = step.tool_calls().next().unwrap();
//! assert_eq!((&*call.name, &*call.arguments), ("write", r#"{"path":"a.txt","content":"hello"}"#));
//! # app.close().await?; Ok(()) }
//! ```

mod file;
mod fixed;
mod help;
mod lex;
mod offline;
mod parse;
mod play;
mod program;
mod report;
mod rule;
mod script;
mod turn;

pub use file::{FileScript, FileScriptError};
pub use fixed::Fixed;
pub use help::HELP;
pub use offline::{Config, LlmScript};
pub use program::quote;
pub use script::Script;
