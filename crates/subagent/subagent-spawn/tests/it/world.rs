//! The whole app on a directory of its own, and what a test believes: files, logs read again, news.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, AgentGone, AgentPublished, AgentRef, Agents, Profile, Spec, TurnOutcome};
use bundle::{Policies, Settings};
use context::{Plugins, Scope};
use llm::LlmAdapter;
use sandbox::Mode;
use sandbox_policy::{ModeSet, SandboxPolicy};
use session::{Clock, Session, SessionId, Sessions, Snapshot, ToolReturned};
use subagent::{ChildEnded, ChildStarted, Descriptor, Request, Run, RunId, StopReason, Subagents};
use tokio::sync::watch;
use user_approval::{Approval, ApprovalAsked, ApprovalDecided, PolicySet};

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

/// The model of agents that are not about models.
pub(crate) const SCRIPT: &str = "offline/script";

pub(crate) struct World {
    pub(crate) app: Scope,
    pub(crate) agents: Arc<Agents>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) subagents: Arc<Subagents>,
    pub(crate) news: News,
    top: PathBuf,
    _dir: tempfile::TempDir,
}

/// What the app announced, in order.
pub(crate) struct News(watch::Sender<Vec<Told>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Published(SessionId),
    Gone(SessionId),
    Started { run: RunId, parent: SessionId, child: Option<SessionId> },
    Ended { run: RunId, child: Option<SessionId>, reason: StopReason },
}

/// A clock that stands still, so that no fact changes at midnight.
struct Still;

impl Clock for Still {
    fn now(&self) -> u64 {
        1_790_000_000_123
    }
}

/// Fails instead of hanging.
pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("done before the deadline")
}

pub(crate) fn policies(sandbox: Mode) -> Policies {
    Policies { sandbox, ..Policies::default() }
}

impl World {
    /// Everything that a program has. Unswitched sessions are read-only.
    pub(crate) async fn new() -> Self {
        Self::with(Policies::default(), |plugins| plugins, |_| {}).await
    }

    /// Everything but the plugins named.
    pub(crate) async fn without(names: &[&str]) -> Self {
        let without = |plugins| names.iter().fold(plugins, |plugins: Plugins, name| plugins.without(name).unwrap());
        Self::with(Policies::default(), without, |_| {}).await
    }

    /// Everything, changed by `edit`, after `first` has put something of its own into the app.
    pub(crate) async fn with(
        policies: Policies,
        edit: impl FnOnce(Plugins) -> Plugins,
        first: impl FnOnce(&Scope),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for name in ["ws", "home", "outside"] {
            std::fs::create_dir(top.join(name)).unwrap();
        }
        let app = Scope::root("app");
        let sessions = Sessions::with_clock(Arc::new(Still));
        app.provide(sessions.clone()).unwrap();
        first(&app);
        let settings = Settings { policies, ..Settings::new(top.join("home")) };
        edit(bundle::full(settings).without("session").unwrap()).start(&app).await.unwrap();
        let news = News::of(&app);
        let (agents, subagents) = (app.get().unwrap(), app.get().unwrap());
        Self { app, agents, sessions, subagents, news, top, _dir: dir }
    }

    pub(crate) fn policy(&self) -> Arc<SandboxPolicy> {
        self.app.get().unwrap()
    }

    pub(crate) fn approval(&self) -> Arc<Approval> {
        self.app.get().unwrap()
    }

    pub(crate) fn model(&self, name: &str, model: impl LlmAdapter + 'static) {
        self.app.register::<dyn LlmAdapter>(name, Arc::new(model)).unwrap();
    }

    /// A top-level agent in the workspace, unswitched.
    pub(crate) async fn parent(&self) -> Agent {
        self.agent(self.sessions.create(self.at("ws").to_str().unwrap())).await
    }

    pub(crate) async fn agent(&self, session: Session) -> Agent {
        let spec = Spec::new(session, Profile::of(SCRIPT.parse().unwrap()));
        self.agents.create(&self.app, spec).await.unwrap()
    }

    /// Starts a child with a script.
    pub(crate) async fn spawn(&self, parent: &AgentRef, script: &str) -> Run {
        self.subagents.start(parent, "spawn", Request::new(script)).await.unwrap()
    }

    /// The live agent of a run.
    pub(crate) fn child(&self, run: &Run) -> AgentRef {
        self.agents.get(run.child().expect("it has a session here")).expect("it is live")
    }

    pub(crate) fn live(&self) -> Vec<SessionId> {
        self.agents.list().iter().map(AgentRef::id).collect()
    }

    /// Below the test's own directory: `ws` is the workspace, `outside` is not in it, `home` is Tether's.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn file(&self, id: SessionId) -> PathBuf {
        self.at("home/sessions").join(format!("{id}.jsonl"))
    }

    /// A log as somebody sees it who has nothing but its file.
    pub(crate) fn log(&self, id: SessionId) -> Snapshot {
        read(&std::fs::read_to_string(self.file(id)).unwrap())
    }

    /// What is in the directory of the sessions, but for the lock that the store keeps for the next one.
    pub(crate) fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.at("home/sessions")) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| !name.starts_with("spare-"));
        names.sort();
        names
    }

    /// Closes the app: nobody complains, and only logs are left, those of these sessions.
    pub(crate) async fn close(self, kept: &[SessionId]) {
        self.app.close().await.unwrap();
        assert_eq!(self.live(), [], "no agent is left");
        let mut want: Vec<_> = kept.iter().map(|id| format!("{id}.jsonl")).collect();
        want.sort();
        assert_eq!(self.names(), want);
    }
}

impl News {
    fn of(app: &Scope) -> Self {
        let news = watch::Sender::new(Vec::new());
        let realm = app.realm();
        let tell = |told: Told, news: &watch::Sender<Vec<Told>>| news.send_modify(|all| all.push(told));
        let to = news.clone();
        let published = realm.on(move |AgentPublished(agent)| tell(Told::Published(agent.id()), &to));
        let to = news.clone();
        let gone = realm.on(move |AgentGone(id)| tell(Told::Gone(*id), &to));
        let to = news.clone();
        let started = realm.on(move |ChildStarted { run, parent, child, .. }| {
            tell(Told::Started { run: *run, parent: *parent, child: *child }, &to);
        });
        let to = news.clone();
        let ended = realm.on(move |ChildEnded { run, child, result, .. }| {
            tell(Told::Ended { run: *run, child: *child, reason: result.reason }, &to);
        });
        [published, gone, started, ended].into_iter().for_each(|listener| app.own(listener).unwrap());
        Self(news)
    }

    pub(crate) fn all(&self) -> Vec<Told> {
        self.0.borrow().clone()
    }

    /// Waits until what was announced is as `wanted` says.
    pub(crate) async fn until(&self, mut wanted: impl FnMut(&[Told]) -> bool) {
        self.0.subscribe().wait_for(|all| wanted(all)).await.expect("its sender is here");
    }

    pub(crate) async fn ended(&self, run: RunId) {
        self.until(|all| all.iter().any(|told| told.is_end_of(run))).await;
    }

    /// Whether the end of a run was announced by now.
    pub(crate) fn has_ended(&self, run: RunId) -> bool {
        self.0.borrow().iter().any(|told| told.is_end_of(run))
    }

    /// The sessions of the children, in the order in which they were announced.
    pub(crate) fn children(&self) -> Vec<SessionId> {
        let child = |told: &Told| if let Told::Started { child, .. } = told { *child } else { None };
        self.0.borrow().iter().filter_map(child).collect()
    }

    /// Every run was announced, then its end, each once.
    pub(crate) fn assert_paired(&self) {
        let all = self.all();
        let mut runs: Vec<_> = all.iter().filter_map(Told::run).collect();
        runs.sort_unstable();
        runs.dedup();
        for run in runs {
            let told: Vec<&Told> = all.iter().filter(|told| told.run() == Some(run)).collect();
            assert!(matches!(told[..], [Told::Started { .. }, Told::Ended { .. }]), "{told:?}");
        }
    }
}

impl Told {
    fn is_end_of(&self, run: RunId) -> bool {
        matches!(self, Self::Ended { run: of, .. } if *of == run)
    }

    fn run(&self) -> Option<RunId> {
        match self {
            Self::Started { run, .. } | Self::Ended { run, .. } => Some(*run),
            Self::Published(_) | Self::Gone(_) => None,
        }
    }
}

/// A log, by its text alone. A line that is being written now is not there yet.
pub(crate) fn read(text: &str) -> Snapshot {
    let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
    let house = Sessions::new();
    house.learn::<ModeSet>().unwrap();
    house.learn::<PolicySet>().unwrap();
    house.learn::<ApprovalAsked>().unwrap();
    house.learn::<ApprovalDecided>().unwrap();
    house.learn::<Descriptor>().unwrap();
    house.vocabulary().decode(whole).unwrap().log().clone()
}

pub(crate) fn switch(agent: &AgentRef, mode: Mode) {
    agent.session().append(ModeSet::by_user(mode)).unwrap();
}

/// Has an agent do what a script says, to the end of its turn.
pub(crate) async fn tell(agent: &AgentRef, script: &str) -> TurnOutcome {
    agent.followup(script).unwrap().outcome().await
}

pub(crate) fn said(outcome: &TurnOutcome) -> String {
    outcome.output.as_ref().map(|message| message.text()).unwrap_or_default()
}

pub(crate) fn tags(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(|event| event.tag().to_owned()).collect()
}

/// Every event of a type, in order.
pub(crate) fn all<E: session::Payload>(log: &Snapshot) -> Vec<&E> {
    log.events().iter().filter_map(|event| event.get()).collect()
}

/// What the tools answered, a text a call.
pub(crate) fn answers(log: &Snapshot) -> Vec<String> {
    let text = |result: &ToolReturned| result.content.iter().filter_map(llm::Content::as_text).collect();
    all::<ToolReturned>(log).into_iter().map(text).collect()
}
