//! The whole app on a directory of its own, and an agent that does what a script says.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{Agent, AgentPublished, Agents, Profile, Spec, TurnOutcome};
use bundle::{Policies, Settings};
use context::{BootError, Plugins, Scope};
use jobs::Jobs;
use llm::ToolSchema;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{
    Clock, Event, InboxAccepted, RequestHeader, RequestHeaderEvent, Session, SessionId, Sessions, Snapshot, Source,
    ToolReturned, Typed,
};
use subagent::{BackgroundReport, Descriptor};
use tool_subagent::{Config, defaults};
use tools::Tool;
use user_approval::PolicySet;

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) agent: Agent,
    pub(crate) top: PathBuf,
    /// Everyone who was published after the agent, in order.
    published: Arc<Mutex<Vec<SessionId>>>,
    _dir: tempfile::TempDir,
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

impl Stage {
    /// Unswitched sessions may write below `ws`.
    pub(crate) async fn new() -> Self {
        Self::with(|plugins| plugins, |_| {}).await.unwrap()
    }

    /// The app changed by `edit`, after `first` has put something of its own into it.
    pub(crate) async fn with(
        edit: impl FnOnce(Plugins) -> Plugins,
        first: impl FnOnce(&Scope),
    ) -> Result<Self, BootError> {
        Self::built(Vec::new(), edit, first).await
    }

    /// With these tools besides the default ones, after `first` has put something of its own into the app.
    pub(crate) async fn with_tools(tools: impl IntoIterator<Item = Config>, first: impl FnOnce(&Scope)) -> Self {
        Self::built(tools.into_iter().collect(), |plugins| plugins, first).await.unwrap()
    }

    pub(crate) async fn built(
        tools: Vec<Config>,
        edit: impl FnOnce(Plugins) -> Plugins,
        first: impl FnOnce(&Scope),
    ) -> Result<Self, BootError> {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("ws")).unwrap();
        std::fs::create_dir(top.join("home")).unwrap();
        let app = Scope::root("app");
        app.provide(Sessions::with_clock(Arc::new(Still))).unwrap();
        first(&app);
        let policies = Policies { sandbox: Mode::WorkspaceWrite, ..Policies::default() };
        let subagents = defaults().into_iter().chain(tools).collect();
        let settings = Settings { policies, subagents, ..Settings::new(top.join("home")) };
        edit(bundle::full(settings).without("session").unwrap()).start(&app).await?;
        // Between the plugins and the agent, so that these do not close side by side.
        let published = Arc::new(Mutex::new(Vec::new()));
        let notes = published.clone();
        app.own(app.realm().on(move |AgentPublished(agent)| notes.lock().unwrap().push(agent.id()))).unwrap();
        let (agents, sessions) = (app.get::<Agents>().unwrap(), app.get::<Sessions>().unwrap());
        let session = sessions.create(top.join("ws").to_str().unwrap());
        let spec = Spec::new(session, Profile::of("offline/script".parse().unwrap()));
        let agent = agents.create(&app, spec).await.unwrap();
        published.lock().unwrap().clear();
        Ok(Self { app, agent, top, published, _dir: dir })
    }

    pub(crate) fn jobs(&self) -> Arc<Jobs> {
        self.app.get().unwrap()
    }

    pub(crate) async fn tell(&self, script: &str) -> TurnOutcome {
        self.agent.followup(script).unwrap().outcome().await
    }

    /// The answers to the agent's calls so far.
    pub(crate) fn results(&self) -> Vec<Typed<ToolReturned>> {
        self.agent.session().snapshot().events().iter().filter_map(Event::typed).collect()
    }

    /// Has the agent make one call, and says what it was answered: the kind of failure, and the text without the
    /// directory's name.
    pub(crate) async fn answer(&self, script: &str) -> String {
        self.tell(script).await;
        self.shown(&self.results().pop().expect("it made a call"))
    }

    pub(crate) fn shown(&self, result: &ToolReturned) -> String {
        let text: String = result.content.iter().filter_map(llm::Content::as_text).collect();
        let code = result.error.as_ref().map_or("ok", |error| &*error.code);
        assert_eq!(result.is_error, code != "ok");
        format!("[{code}] {}", self.plain(&text))
    }

    /// Without what differs from one run to the next.
    pub(crate) fn plain(&self, text: &str) -> String {
        let ids = self.published.lock().unwrap().clone();
        let text = text.replace(self.top.to_str().unwrap(), "");
        ids.iter().zip(1..).fold(text, |text, (id, n)| text.replace(&id.to_string(), &format!("CHILD-{n}")))
    }

    /// The sessions of the children so far, in the order in which they were published.
    pub(crate) fn children(&self) -> Vec<SessionId> {
        self.published.lock().unwrap().clone()
    }

    /// What the agent was told of jobs, from what is on the disk.
    pub(crate) fn notices(&self) -> Vec<String> {
        let log = self.log(self.agent.id());
        let accepted = log.events().iter().filter_map(|event| event.get::<InboxAccepted>());
        let notices = accepted.filter(|message| message.source == Source::Notice);
        notices.map(|message| self.plain(&message.message.text())).collect()
    }

    /// A log as somebody sees it who has nothing but its file.
    pub(crate) fn log(&self, id: SessionId) -> Snapshot {
        let text = std::fs::read_to_string(self.top.join(format!("home/sessions/{id}.jsonl"))).unwrap();
        let (whole, _) = text.rsplit_once('\n').unwrap();
        let house = Sessions::new();
        house.learn::<ModeSet>().unwrap();
        house.learn::<PolicySet>().unwrap();
        house.learn::<Descriptor>().unwrap();
        house.learn::<BackgroundReport>().unwrap();
        house.vocabulary().decode(whole).unwrap().log().clone()
    }

    /// What a session's model was last asked with.
    pub(crate) fn header(&self, id: SessionId) -> Arc<RequestHeader> {
        self.log(id).latest::<RequestHeaderEvent>().expect("its model was asked").header.clone()
    }

    /// The tools that a session's model was shown.
    pub(crate) fn shown_to(&self, id: SessionId) -> Vec<String> {
        self.header(id).tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    /// What the tools answered in a child.
    pub(crate) fn answers_in(&self, id: SessionId) -> Vec<String> {
        let log = self.log(id);
        log.events().iter().filter_map(|event| event.get()).map(|result| self.shown(result)).collect()
    }

    pub(crate) fn offered(&self, name: &str) -> Option<ToolSchema> {
        Some(self.app.realm().named::<dyn Tool>(name)?.schema().clone())
    }

    /// A file below the workspace, if there is one.
    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.top.join("ws").join(name)).ok()
    }

    /// How many logs are kept.
    pub(crate) fn kept(&self) -> usize {
        let logs = std::fs::read_dir(self.top.join("home/sessions")).unwrap();
        logs.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "jsonl")).count()
    }

    /// Whether no child is left.
    pub(crate) fn is_alone(&self) -> bool {
        let live = self.app.get::<Agents>().unwrap().list();
        live.iter().map(|agent| agent.id()).eq([self.agent.id()])
    }

    /// Whether no child ever was.
    pub(crate) fn had_no_child(&self) -> bool {
        self.is_alone() && self.children().is_empty() && self.kept() == 1
    }
}

/// Whether a session is a child's.
pub(crate) fn is_child(session: &Session) -> bool {
    session.header().lineage().is_some()
}

/// Something registered by name, for [`Stage::with`].
pub(crate) fn named<T: ?Sized + Send + Sync + 'static>(app: &Scope, name: &str, value: Arc<T>) {
    app.register(name, value).unwrap();
}
