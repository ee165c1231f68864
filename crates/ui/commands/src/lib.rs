//! Commands of people: a line that begins with `/` and a known name is for the harness, not for the model.
//!
//! *Owns:* what a command is, how a line is told to be one, running it with its end on a cancel.
//! *Never:* a model that sees a command or its answer, an event in a log, a command of its own but `/help`.
//!
//! Commands are registered by name in a scope, so one that is registered for an agent stands in the place of the app's:
//!
//! ```
//! # use std::sync::Arc; use async_trait::async_trait; use commands::*; use context::{Plugins, Scope};
//! # use tokio_util::sync::CancellationToken;
//! struct Greet;
//! #[async_trait]
//! impl Command for Greet {
//!     fn description(&self) -> &str { "Greets somebody" }
//!     fn hint(&self) -> Option<&str> { Some("whom") }
//!     async fn run(&self, invocation: &Invocation) -> Result<String, String> {
//!         Ok(format!("hello, {}", invocation.arguments))
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Scope::root("app");
//! Plugins::new().with(CommandsPlugin, ()).start(&app).await?;
//! app.register::<dyn Command>("greet", Arc::new(Greet))?;
//! let session = session::Sessions::new().create("/home/me/project");
//! let (typed, cancelled) = ("/greet everybody", CancellationToken::new());
//! assert_eq!(dispatch(&app, &session, typed, &cancelled).await, Some(Outcome::Said("hello, everybody".into())));
//! assert_eq!(dispatch(&app, &session, "/usr/bin/env is what?", &cancelled).await, None, "the model's");
//! # app.close().await?; Ok(()) }
//! ```

mod help;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use context::{Ctx, Realm};
use futures_util::FutureExt as _;
use session::Session;
use tokio_util::sync::CancellationToken;

pub use help::CommandsPlugin;

/// Something that a person can ask for by name. Registered as `dyn Command`.
#[async_trait]
pub trait Command: Send + Sync {
    /// What it does, in one line.
    fn description(&self) -> &str;

    /// What stands behind its name, in a word or two; `None` if nothing does.
    fn hint(&self) -> Option<&str> {
        None
    }

    /// Does it. What it says is for the person. Dropped on a cancel.
    ///
    /// # Errors
    ///
    /// What was wrong, and what would be right, in one line.
    async fn run(&self, invocation: &Invocation) -> Result<String, String>;
}

/// A command, asked for.
#[derive(Clone)]
pub struct Invocation {
    /// The agent's scope, in whose realm it looks things up.
    pub ctx: Ctx,
    /// The agent's session.
    pub session: Session,
    /// What stood behind the name, without the blanks around it.
    pub arguments: Arc<str>,
    /// Fires when nobody waits any more.
    pub cancelled: CancellationToken,
}

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name, without the slash.
    pub name: Arc<str>,
    /// What it does.
    pub description: String,
    /// What stands behind its name.
    pub hint: Option<String>,
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done, and says this.
    Said(String),
    /// It was not, and this is why.
    Failed(String),
    /// Somebody cancelled it.
    Cancelled,
}

/// What can be asked for in a realm, by name. What is nearer stands in the place of what is further out.
pub fn list(realm: &Realm) -> Vec<Listed> {
    let listed = |(name, command): (Arc<str>, Arc<dyn Command>)| {
        let (description, hint) = (command.description().to_owned(), command.hint().map(str::to_owned));
        Listed { name, description, hint }
    };
    let mut all: Vec<_> = realm.all_named::<dyn Command>().into_iter().map(listed).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// The name and what stands behind it, if a text may be a command: one line that begins with a slash.
pub fn parse(text: &str) -> Option<(&str, &str)> {
    let line = text.trim().strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some((name, arguments.trim()))
}

/// Runs the command that a text is; `None` if it is none that there is, and so meant for the model.
pub async fn dispatch(ctx: &Ctx, session: &Session, text: &str, cancelled: &CancellationToken) -> Option<Outcome> {
    let (name, arguments) = parse(text)?;
    let command = ctx.realm().named::<dyn Command>(name)?;
    let (session, arguments, cancelled) = (session.clone(), arguments.into(), cancelled.clone());
    let invocation = Invocation { ctx: ctx.clone(), session, arguments, cancelled };
    let running = AssertUnwindSafe(command.run(&invocation)).catch_unwind();
    Some(match invocation.cancelled.run_until_cancelled(running).await {
        None => Outcome::Cancelled,
        Some(Ok(Ok(said))) => Outcome::Said(said),
        Some(Ok(Err(why))) => Outcome::Failed(why),
        Some(Err(_)) => {
            tracing::error!(command = name, "a command panicked");
            Outcome::Failed(format!("`/{name}` panicked: this is a bug"))
        }
    })
}
