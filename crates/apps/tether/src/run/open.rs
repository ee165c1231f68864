//! The session that a task runs in: a new one, or one that goes on.

use std::path::{Path, PathBuf};

use agent::{Agent, Agents, Input, Profile, Receipt, Spec};
use anyhow::{Context as _, anyhow};
use context::Scope;
use llm::Route;
use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet, SandboxPolicy};
use session::{RequestHeaderEvent, Session, SessionId, Sessions};
use session_jsonl::JsonlStore;
use session_store::{OpenError, ReadError, SessionStore};
use user_approval::PolicySet;

use crate::cli::Run;
use crate::config::{Config, ConfigError, Places};
use crate::exit::Failure;

/// The model of a machine with no account.
const OFFLINE: &str = "offline/script";

/// A session that is ready for an agent.
pub(crate) struct OpenedSession {
    pub(crate) session: Session,
    pub(crate) profile: Profile,
    pub(crate) mode: Mode,
    pub(crate) repairs: Vec<String>,
}

/// What the bundle is made with.
pub(crate) fn settings(
    task: &Run,
    config: &Config,
    places: &Places,
    models: llm_genai::Config,
) -> Result<bundle::Settings, Failure> {
    let mut private = vec![places.config.clone()];
    if let Some(file) = &task.env_file {
        private.push(std::path::absolute(file).map_err(Failure::usage)?);
    }
    Ok(bundle::Settings {
        home: places.home.clone(),
        policies: bundle::Policies {
            sandbox: config.sandbox,
            approval: config.approval,
            limits: subagent::Limits { max_depth: config.max_depth },
        },
        private,
        protected: config.protected.clone(),
        models,
        script: config.script.clone(),
    })
}

pub(crate) async fn session(
    app: &Scope,
    task: &Run,
    config: &Config,
    models: &llm_genai::Config,
    root: &Path,
) -> Result<OpenedSession, Failure> {
    let (session, repairs) = match task.resume {
        None => (create(app, task, config, root)?, Vec::new()),
        Some(id) => resume(app, id).await?,
    };
    // Whatever can be wrong with the command comes before the first switch.
    let route = route(&session, task, config, models)?;
    route.adapter(app.realm()).map_err(Failure::usage)?;
    if !session.is_backed() {
        // Before anything is shown of a session that cannot be kept. Its file comes with the first flush.
        let store = app.get::<dyn SessionStore>().expect("the bundle has a store");
        store.create(&session).await.map_err(Failure::failed)?;
    }
    if let Some(mode) = task.sandbox {
        session.append(ModeSet::by_user(mode)).map_err(Failure::failed)?;
    }
    if let Some(policy) = task.approval {
        session.append(PolicySet::by_user(policy)).map_err(Failure::failed)?;
    }
    let policy = app.get::<SandboxPolicy>().expect("the bundle has a sandbox policy");
    Ok(OpenedSession { mode: policy.effective(&session), session, profile: Profile::of(route), repairs })
}

pub(crate) async fn agent(app: &Scope, opened: OpenedSession, prompt: &str) -> Result<(Agent, Receipt), Failure> {
    let agents = app.get::<Agents>().expect("the bundle has agents");
    let spec = Spec { prompt: Some(Input::prompt(prompt)), ..Spec::new(opened.session, opened.profile) };
    let mut agent = agents.create(app, spec).await.map_err(Failure::failed)?;
    let receipt = agent.prompted().expect("the spec has a prompt");
    Ok((agent, receipt))
}

/// A new top-level session records the mode that it starts with, so that later defaults never change it.
fn create(app: &Scope, task: &Run, config: &Config, root: &Path) -> Result<Session, Failure> {
    let sessions = app.get::<Sessions>().expect("the bundle has sessions");
    let root = root.to_str().ok_or_else(|| Failure::usage(ConfigError::NotUtf8(root.to_owned())))?;
    let session = sessions.create(root);
    if task.sandbox.is_none() && config.initial_override {
        let initial = ModeSet { mode: config.sandbox, source: Some(ModeCause::Initial) };
        session.append(initial).map_err(Failure::failed)?;
    }
    Ok(session)
}

/// The workspace root of a session that goes on, whose project configures it, wherever the command was started.
pub(crate) async fn root_of(id: SessionId, task: &Run, places: &Places) -> Result<PathBuf, Failure> {
    let (sessions, store) = (Sessions::new(), JsonlStore::new(places.home.join("sessions")));
    let found = store.summary(&sessions.vocabulary(), id).await.map_err(|error| match error {
        ReadError::NotFound(_) => Failure::usage(error),
        ReadError::Damaged(_) | ReadError::Io(_) => Failure::failed(error),
    })?;
    let header = found.header;
    if let Some(lineage) = header.lineage() {
        let parent = lineage.parent();
        return Err(Failure::usage(anyhow!("session {id} is a child of {parent}: it is resumed by its parent")));
    }
    let kept = Path::new(&**header.cwd());
    if let Some(given) = &task.cwd
        && given.canonicalize().ok().as_deref() != Some(kept)
    {
        let kept = kept.display();
        return Err(Failure::usage(anyhow!("session {id} works in {kept}: leave --cwd out, its root cannot change")));
    }
    if !kept.is_dir() {
        return Err(Failure::usage(anyhow!("session {id} works in {}, which is no directory now", kept.display())));
    }
    Ok(kept.to_owned())
}

async fn resume(app: &Scope, id: SessionId) -> Result<(Session, Vec<String>), Failure> {
    let sessions = app.get::<Sessions>().expect("the bundle has sessions");
    let store = app.get::<dyn SessionStore>().expect("the bundle has a store");
    let opened = store.open(&sessions, id).await.map_err(|error| match error {
        OpenError::NotFound(_) => Failure::usage(error),
        _ => Failure::failed(error),
    })?;
    Ok((opened.session, opened.repairs.iter().map(ToString::to_string).collect()))
}

/// The flag, else what the session used last, else the configuration, else the first provider with a key, else the
/// model that needs none.
fn route(session: &Session, task: &Run, config: &Config, models: &llm_genai::Config) -> Result<Route, Failure> {
    let last = || session.latest::<RequestHeaderEvent>().map(|last| last.header.route());
    let keyed = || models.providers_with_key().into_iter().next();
    match task.model.clone().or_else(last).or_else(|| config.model.clone()).or_else(keyed) {
        Some(route) => Ok(route),
        None => OFFLINE.parse().context("the offline model's name").map_err(Failure::failed),
    }
}
