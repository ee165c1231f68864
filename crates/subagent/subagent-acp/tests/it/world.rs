//! An app with one kind of children, on a directory of its own, and what a test believes.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::{Agent, Agents, Profile, Spec};
use context::{BoxError, Plugins, Scope};
use llm::Route;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::Sessions;
use subagent::{ChildProgress, Doing, Limits, Request, Run, RunResult, StartError, Subagents};
use subagent_acp::{Config, SubagentAcp};
use subagent_subprocess::{Graces, Settings};

use crate::stub::STUB;

/// Only a test that hangs meets it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The provider's name.
pub(crate) const NAME: &str = "stub";

const MARK: &str = "IT_MARK";

/// What every process of one test has in its environment, and no other process.
#[derive(Clone, Debug)]
pub(crate) struct Mark(pub(crate) String);

impl Mark {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn variable(&self) -> (OsString, OsString) {
        (MARK.into(), self.0.clone().into())
    }

    /// Processes that have it, zombies not counted.
    pub(crate) fn processes(&self) -> Vec<String> {
        let entry = format!("{MARK}={}", self.0);
        let has_it = |pid: &String| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        };
        let names = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.parse::<u32>().is_ok()).filter(has_it).collect()
    }

    #[track_caller]
    pub(crate) fn is_gone(&self) {
        self.is_gone_within(Duration::ZERO);
    }

    #[track_caller]
    pub(crate) fn is_gone_within(&self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            let told = |pid: &String| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            assert!(Instant::now() < until, "{:?} are left", left.iter().map(told).collect::<Vec<_>>());
            std::thread::yield_now();
        }
    }
}

pub(crate) async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("done before the deadline")
}

pub(crate) fn prompt(text: &str) -> Request {
    Request::new(text)
}

/// A stub that misbehaves like this, or not: an empty manner.
pub(crate) fn stub(manner: &str, mark: &Mark) -> Config {
    let graces =
        Graces { cancel: Duration::from_secs(2), close: Duration::from_secs(2), terminate: Duration::from_millis(200) };
    let settings = Settings {
        args: vec![STUB.into(), manner.into()],
        env: vec![mark.variable()],
        graces,
        // By no name: where the checkout is below `/tmp`, a confined process does not see it.
        ..Settings::new("/proc/self/exe", "/proc/self/exe")
    };
    Config { patience: Duration::from_secs(20), ..Config::new(NAME, settings) }
}

/// Everything that an agent needs to delegate, without commands and without a store.
pub(crate) fn spine(limits: Limits, configs: Vec<Config>) -> Plugins {
    Plugins::new()
        .with(session::SessionsPlugin, ())
        .with(agent::AgentsPlugin, ())
        .with(agent_loop::AgentLoop, ())
        .with(sandbox_policy::SandboxPolicyPlugin, sandbox_policy::Config { default: Mode::WorkspaceWrite })
        .with(subagent::SubagentPlugin, subagent::Config { limits })
        .with(SubagentAcp, configs)
}

pub(crate) struct World {
    pub(crate) app: Scope,
    pub(crate) subagents: Arc<Subagents>,
    pub(crate) mark: Mark,
    top: PathBuf,
    told: Arc<Mutex<Vec<ChildProgress>>>,
    _dir: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new(manner: &str) -> Self {
        Self::with(manner, |config, _| config).await
    }

    /// With a stub changed by `edit`, which is given the directory of everything.
    pub(crate) async fn with(manner: &str, edit: impl FnOnce(Config, &Path) -> Config) -> Self {
        Self::made(manner, edit, |plugins, _| plugins).await.unwrap()
    }

    pub(crate) async fn made(
        manner: &str,
        edit: impl FnOnce(Config, &Path) -> Config,
        plugins: impl FnOnce(Plugins, &Path) -> Plugins,
    ) -> Result<Self, BoxError> {
        // Not below `/tmp`, which a confined process sees another one of.
        let beside = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::tempdir_in(if beside.starts_with("/tmp") { Path::new("/var/tmp") } else { beside })?;
        let top = dir.path().canonicalize()?;
        for name in ["ws", "home", "outside", "state"] {
            fs::create_dir(top.join(name))?;
        }
        let (app, mark) = (Scope::root("app"), Mark::new());
        let config = edit(stub(manner, &mark), &top);
        let private = vec![top.join("home")];
        let all = spine(Limits::default(), vec![config])
            .with(fs_sandbox::FsSandboxPlugin, fs_sandbox::Config { private, ..fs_sandbox::Config::default() })
            .with(sandbox_linux::SandboxLinux, sandbox_linux::Config::default());
        plugins(all, &top).start(&app).await?;
        let subagents = app.get::<Subagents>().ok_or("the plugin provides it")?;
        let told = Arc::<Mutex<Vec<ChildProgress>>>::default();
        let hears = told.clone();
        app.own(app.realm().on(move |progress: &ChildProgress| {
            let mut told = hears.lock().unwrap();
            // A flood is not kept.
            if told.len() < 1_000 {
                told.push(progress.clone());
            }
        }))?;
        Ok(Self { app, subagents, mark, top, told, _dir: dir })
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok()
    }

    /// An agent whose log says this mode, if any.
    pub(crate) async fn parent(&self, mode: Option<Mode>) -> Agent {
        let sessions = self.app.get::<Sessions>().unwrap();
        let session = sessions.create(self.at("ws").to_str().unwrap());
        if let Some(mode) = mode {
            session.append(ModeSet::by_user(mode)).unwrap();
        }
        let spec = Spec::new(session, Profile::of(Route::new("nobody", "nothing")));
        let agents = self.app.get::<Agents>().unwrap();
        within(agents.create(&self.app, spec)).await.unwrap()
    }

    pub(crate) async fn start(&self, parent: &Agent, request: Request) -> Result<Run, StartError> {
        within(self.subagents.start(parent, NAME, request)).await
    }

    /// A start that has to fail, in words. Nothing of it is left.
    pub(crate) async fn refused(&self, parent: &Agent) -> String {
        let error = self.start(parent, prompt("say hello")).await.map(|_| ()).expect_err("it must not start");
        self.mark.is_gone();
        error.to_string()
    }

    /// A child from its start to its end, of which nothing is left.
    pub(crate) async fn child(&self, parent: &Agent, text: &str) -> RunResult {
        let run = self.start(parent, prompt(text)).await.unwrap();
        let result = within(run.result()).await.clone();
        within(run.dispose()).await.unwrap();
        self.mark.is_gone();
        result
    }

    /// The same for an unswitched parent of its own.
    pub(crate) async fn does(&self, text: &str) -> RunResult {
        let parent = self.parent(None).await;
        let result = self.child(&parent, text).await;
        within(parent.dispose()).await.unwrap();
        result
    }

    /// Waits, from now on, until a child says something.
    pub(crate) fn says(&self) -> impl Future<Output = ()> + use<> {
        let (says, mut said) = tokio::sync::watch::channel(false);
        let hears = self.app.realm().on(move |progress: &ChildProgress| {
            if let Doing::Says(_) = progress.doing {
                says.send_replace(true);
            }
        });
        async move {
            said.wait_for(|said| *said).await.unwrap();
            drop(hears);
        }
    }

    pub(crate) fn told(&self) -> Vec<Doing> {
        self.told.lock().unwrap().iter().map(|progress| progress.doing.clone()).collect()
    }

    pub(crate) async fn close(self) {
        within(self.app.close()).await.unwrap();
        self.mark.is_gone();
    }
}
