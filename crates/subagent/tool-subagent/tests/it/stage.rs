//! The whole app on a directory of its own, and an agent that does what a script says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Agents, Profile, Spec, TurnOutcome};
use bundle::{Policies, Settings};
use context::{BootError, Plugins, Scope};
use sandbox::Mode;
use session::{Clock, Event, Session, Sessions, ToolReturned, Typed};

/// Only a test that hangs meets it.
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) agent: Agent,
    top: PathBuf,
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
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("ws")).unwrap();
        std::fs::create_dir(top.join("home")).unwrap();
        let app = Scope::root("app");
        app.provide(Sessions::with_clock(Arc::new(Still))).unwrap();
        first(&app);
        let policies = Policies { sandbox: Mode::WorkspaceWrite, ..Policies::default() };
        let (models, protected) = (Default::default(), Vec::new());
        let settings =
            Settings { home: top.join("home"), policies, private: Vec::new(), protected, models, script: None };
        edit(bundle::full(settings).without("session").unwrap()).start(&app).await?;
        let (agents, sessions) = (app.get::<Agents>().unwrap(), app.get::<Sessions>().unwrap());
        let session = sessions.create(top.join("ws").to_str().unwrap());
        let spec = Spec::new(session, Profile::of("offline/script".parse().unwrap()));
        let agent = agents.create(&app, spec).await.unwrap();
        Ok(Self { app, agent, top, _dir: dir })
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
        let result = self.results().pop().expect("it made a call");
        let text: String = result.content.iter().filter_map(llm::Content::as_text).collect();
        let code = result.error.as_ref().map_or("ok", |error| &*error.code);
        assert_eq!(result.is_error, code != "ok");
        format!("[{code}] {}", text.replace(self.top.to_str().unwrap(), ""))
    }

    /// Whether no child is left.
    pub(crate) fn is_alone(&self) -> bool {
        let live = self.app.get::<Agents>().unwrap().list();
        live.iter().map(|agent| agent.id()).eq([self.agent.id()])
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
