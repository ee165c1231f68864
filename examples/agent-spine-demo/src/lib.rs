//! An app and an agent, in two calls: what every demo begins with.
//!
//! *Owns:* a start that leaves nothing half started, an agent in a directory, the demos' model.
//! *Never:* a list of plugins (that exists once, in `bundle`), a front door, configuration, an initial mode on an agent's log.
//!
//! ```
//! use agent_spine_demo::{Demo, SCRIPT, spine};
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let demo = Demo::start("hello", spine(Default::default())).await?;
//! let agent = demo.agent(".", &SCRIPT.parse()?).await?;
//! let outcome = agent.followup("say hello")?.outcome().await;
//! assert_eq!(agent_spine_demo::said(&outcome), "hello");
//! demo.close().await?;
//! # Ok(()) }
//! ```
//!
//! A demo of a front door adds it to the list, and has nothing else to say:
//!
//! ```
//! # use context::{BoxError, Ctx, Plugin}; use agent_spine_demo::{Demo, spine};
//! # struct FrontDoor;
//! # #[async_trait::async_trait] impl Plugin for FrontDoor {
//! #     type Config = (); fn name(&self) -> &'static str { "front-door" }
//! #     async fn apply(&self, _: &Ctx, (): ()) -> Result<(), BoxError> { Ok(()) }
//! # }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let demo = Demo::start("door", spine(Default::default()).with(FrontDoor, ())).await?;
//! # demo.close().await?; Ok(()) }
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Agent, Agents, CreateError, Profile, Spec, TurnOutcome};
use bundle::Policies;
use context::{BootError, CloseError, Plugins, Scope};
use llm::{Route, UnknownProvider};
use session::Sessions;

/// The model of the demos. It does what its prompt says, and needs no account.
pub const SCRIPT: &str = "offline/script";

/// A running app.
pub struct Demo {
    app: Scope,
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// It cannot work there.
    #[error("cannot work in {}: {why}", .directory.display())]
    Directory {
        /// Where it was to work.
        directory: PathBuf,
        /// What is wrong with that.
        why: String,
    },
    /// Nobody serves the model.
    #[error(transparent)]
    Model(#[from] UnknownProvider),
    /// The composition lacks what agents are made of.
    #[error("the app has no `{0}`: compose it from `bundle`")]
    Lacks(&'static str),
    /// It could not be created.
    #[error(transparent)]
    Create(#[from] CreateError),
}

/// The smallest app with a model: [`bundle::spine`], and [`SCRIPT`].
pub fn spine(policies: Policies) -> Plugins {
    bundle::spine(policies).with(llm_script::LlmScript, llm_script::Config::default())
}

impl Demo {
    /// Starts an app of these plugins. If one cannot start, what had started is closed before this returns.
    pub async fn start(name: &'static str, plugins: Plugins) -> Result<Self, BootError> {
        let app = Scope::root(name);
        match plugins.start(&app).await {
            Ok(()) => Ok(Self { app }),
            Err(error) => {
                // Why it did not start is what matters.
                let _closed = app.close().await;
                Err(error)
            }
        }
    }

    /// The app.
    pub fn app(&self) -> &Scope {
        &self.app
    }

    /// A service of the app's, if it is composed.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.app.get()
    }

    /// An agent that works in a directory, with this model.
    pub async fn agent(&self, directory: impl AsRef<Path>, model: &Route) -> Result<Agent, AgentError> {
        let agents = self.get::<Agents>().ok_or(AgentError::Lacks("Agents"))?;
        let sessions = self.get::<Sessions>().ok_or(AgentError::Lacks("Sessions"))?;
        model.adapter(self.app.realm())?;
        let session = sessions.create(workspace(directory.as_ref())?);
        Ok(agents.create(&self.app, Spec::new(session, Profile::of(model.clone()))).await?)
    }

    /// Closes the app, and with it every agent. Returns when all is quiet.
    pub async fn close(self) -> Result<(), CloseError> {
        self.app.close().await
    }
}

/// The last that the model said in a turn.
pub fn said(outcome: &TurnOutcome) -> String {
    outcome.output.as_ref().map_or_else(String::new, |message| message.text())
}

/// The one name of a directory.
fn workspace(directory: &Path) -> Result<String, AgentError> {
    let cannot = |why: String| AgentError::Directory { directory: directory.to_owned(), why };
    let real = directory.canonicalize().map_err(|error| cannot(error.to_string()))?;
    if !real.is_dir() {
        return Err(cannot("it is no directory".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| cannot("its path is not UTF-8".to_owned()))
}
