//! A whole app on a store that survives it, and everyone who lives in it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use agent::{Agent, AgentRef, Agents, Profile, Spec};
use async_trait::async_trait;
use bundle::Settings;
use context::Scope;
use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet, SandboxPolicy};
use session::{Session, SessionId, Sessions};
use session_store::{MemoryStore, SessionStore};
use subagent::{ChildEnded, ChildStarted, Run, RunId, Subagents};
use tempfile::TempDir;
use user_approval::{Answer, Answerer, Approval, Question};

use super::Task;
use super::model::{Expected, Model};
use crate::support::until;

pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) store: MemoryStore,
    pub(crate) model: Model,
    pub(crate) live: Vec<Live>,
    pub(crate) default: Mode,
    /// Who must have been asked, in order.
    pub(crate) must_ask: Vec<SessionId>,
    /// How many files were tried.
    pub(crate) files: u32,
    dir: TempDir,
}

/// Somebody who can be told something.
pub(crate) struct Live {
    pub(crate) agent: AgentRef,
    pub(crate) owned: Owned,
}

/// Whoever holds it ends it.
pub(crate) enum Owned {
    Top(Agent),
    Child(Run),
}

pub(crate) struct App {
    pub(crate) scope: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) subagents: Arc<Subagents>,
    pub(crate) policy: Arc<SandboxPolicy>,
    pub(crate) yes: Arc<Yes>,
    pub(crate) news: Arc<Mutex<News>>,
}

/// Which runs were announced, and which ended.
#[derive(Default)]
pub(crate) struct News {
    pub(crate) started: Vec<(RunId, SessionId, SessionId)>,
    pub(crate) ended: Vec<RunId>,
}

/// Allows everything, to everybody, and remembers whom.
#[derive(Default)]
pub(crate) struct Yes(pub(crate) Mutex<Vec<SessionId>>);

#[async_trait]
impl Answerer for Yes {
    fn owns(&self, _: SessionId) -> bool {
        true
    }

    async fn answer(&self, question: &Question) -> Option<Answer> {
        self.0.lock().unwrap().push(question.session);
        Some(Answer::AllowOnce)
    }
}

impl App {
    async fn start(top: PathBuf, store: MemoryStore, default: Mode) -> Self {
        let scope = Scope::root("app");
        scope.provide::<dyn SessionStore>(Arc::new(store)).unwrap();
        let mut settings = Settings::new(top.join("home"));
        settings.policies.sandbox = default;
        let without = ["session-jsonl", "llm-genai"];
        let plugins = without.iter().fold(bundle::full(settings), |plugins, name| plugins.without(name).unwrap());
        plugins.start(&scope).await.unwrap();
        let (yes, news) = (Arc::new(Yes::default()), Arc::new(Mutex::new(News::default())));
        scope.own(scope.get::<Approval>().unwrap().answer_with(yes.clone())).unwrap();
        let told = news.clone();
        let started = scope.realm().on(move |ChildStarted { run, parent, child, .. }| {
            told.lock().unwrap().started.push((*run, *parent, child.expect("it has a session here")));
        });
        let told = news.clone();
        let ended = scope.realm().on(move |ChildEnded { run, .. }| told.lock().unwrap().ended.push(*run));
        [started, ended].into_iter().for_each(|listener| scope.own(listener).unwrap());
        Self {
            sessions: scope.get().unwrap(),
            agents: scope.get().unwrap(),
            subagents: scope.get().unwrap(),
            policy: scope.get().unwrap(),
            scope,
            yes,
            news,
        }
    }
}

impl Live {
    pub(crate) fn run(&self) -> Option<RunId> {
        match &self.owned {
            Owned::Top(_) => None,
            Owned::Child(run) => Some(run.id()),
        }
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ws", "home", "outside"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let (store, default) = (MemoryStore::default(), Mode::ReadOnly);
        let app = App::start(dir.path().canonicalize().unwrap(), store.clone(), default).await;
        let (model, live) = (Model::default(), Vec::new());
        let mut world = Self { app, store, model, live, default, must_ask: Vec::new(), files: 0, dir };
        world.create(None).await;
        world
    }

    /// Below `ws`, the workspace, or `outside` of it.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    pub(crate) async fn create(&mut self, initial: Option<Mode>) {
        let session = self.app.sessions.create(self.at("ws").to_str().unwrap());
        let mut expected = Expected::top_level();
        if let Some(mode) = initial {
            let seq = session.append(ModeSet { mode, source: Some(ModeCause::Initial) }).unwrap();
            expected.switch(seq, mode);
        }
        self.model.known.insert(session.id(), expected);
        self.adopt(session).await;
    }

    async fn adopt(&mut self, session: Session) {
        let spec = Spec::new(session, Profile::of("offline/script".parse().unwrap()));
        let agent = self.app.agents.create(&self.app.scope, spec).await.unwrap();
        self.live.push(Live { agent: agent.handle().clone(), owned: Owned::Top(agent) });
    }

    /// Waits until whatever was begun and given up is over. A child of it that was announced nevertheless is as `given_up`
    /// says, and so is one that it had time to ask for.
    pub(crate) async fn settle(&mut self, given_up: Option<(Expected, Task)>) {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let held: Vec<RunId> = self.live.iter().filter_map(Live::run).collect();
        let news = self.app.news.clone();
        until(|| {
            let news = news.lock().unwrap();
            news.started.iter().all(|(run, ..)| held.contains(run) || news.ended.contains(run))
        })
        .await;
        let started = news.lock().unwrap().started.clone();
        for (_, parent, child) in started {
            if self.model.known.contains_key(&child) {
                continue;
            }
            let (expected, task) = given_up.clone().expect("nobody else could be announced");
            if expected.lineage.unwrap().parent == parent {
                self.model.known.insert(child, expected);
            } else {
                let log = self.read(parent).await;
                self.meet(&log, child, task);
            }
        }
        let agents = self.app.agents.clone();
        until(|| agents.list().iter().all(|agent| self.live.iter().any(|live| live.agent.id() == agent.id()))).await;
    }

    /// The process dies; another one finds what was flushed, and resumes the top-level sessions.
    pub(crate) async fn crash(&mut self) {
        let store = self.store.after_crash();
        let top = self.at("");
        let next = App::start(top, store.clone(), self.default).await;
        self.live.clear();
        self.must_ask.clear();
        // What the dead process goes on to write is written into what nobody reads any more.
        std::mem::replace(&mut self.app, next).scope.close().await.unwrap();
        self.store = store;
        self.forget_what_was_lost().await;
        let top_level: Vec<SessionId> =
            self.model.known.iter().filter(|(_, known)| known.lineage.is_none()).map(|(id, _)| *id).collect();
        for id in top_level {
            let opened = self.store.open(&self.app.sessions, id).await.unwrap();
            self.adopt(opened.session).await;
        }
    }
}
