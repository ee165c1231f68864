//! The session that a task runs in: a new one, or one that goes on.

use std::path::{Path, PathBuf};

use agent::{Agent, Agents, Input, Profile, Receipt, Spec};
use anyhow::anyhow;
use app_boot::{Config, Places};
use bundle::Settings;
use context::Scope;
use permission::Permission;
use sandbox::Mode;
use sandbox_policy::SandboxPolicy;
use session::{RequestHeaderEvent, Session, SessionId, Sessions};
use session_jsonl::JsonlStore;
use session_store::{OpenError, ReadError, SessionStore};

use crate::cli::Run;
use crate::exit::Failure;
use crate::opening::{Begins, known_preset, known_to_fail, route, switch};

/// A session that is ready for an agent.
pub(crate) struct OpenedSession {
    pub(crate) session: Session,
    pub(crate) profile: Profile,
    pub(crate) mode: Mode,
    pub(crate) repairs: Vec<String>,
}

pub(crate) async fn session(
    app: &Scope,
    task: &Run,
    config: &Config,
    settings: &Settings,
    root: &Path,
) -> Result<OpenedSession, Failure> {
    let permission = app.get::<Permission>().expect("the bundle has presets");
    known_preset(&task.switching, permission.presets()).map_err(Failure::usage)?;
    let (session, repairs) = match task.resume {
        None => (create(app, root)?, Vec::new()),
        Some(id) => resume(app, id).await?,
    };
    // Whatever can be wrong with the command comes before the first switch.
    let last = session.latest::<RequestHeaderEvent>().map(|last| last.header.route());
    let route = route(&task.configuring, last, config, settings)?;
    route.adapter(app.realm()).map_err(Failure::usage)?;
    known_to_fail(&route, settings).map_or(Ok(()), |why| Err(Failure::usage(anyhow!(why))))?;
    let begins = if task.resume.is_none() { Begins::Now } else { Begins::Before };
    switch(&session, &task.switching, begins, config, &permission)?;
    if !session.is_backed() {
        // Before anything is shown of a session that cannot be kept. Its file comes with the first flush.
        let store = app.get::<dyn SessionStore>().expect("the bundle has a store");
        store.create(&session).await.map_err(Failure::failed)?;
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

fn create(app: &Scope, root: &Path) -> Result<Session, Failure> {
    let sessions = app.get::<Sessions>().expect("the bundle has sessions");
    let unnameable = || anyhow!("{} is not UTF-8, and a log could not name it", root.display());
    Ok(sessions.create(root.to_str().ok_or_else(|| Failure::usage(unnameable()))?))
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
    if let Some(given) = &task.configuring.cwd
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
