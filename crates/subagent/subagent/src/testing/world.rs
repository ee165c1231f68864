//! An app with a provider in it, and what a check believes: the registries, the durable logs, the announcements.

use std::sync::{Arc, Mutex, PoisonError};

use agent::{Agent, AgentGone, AgentPublished, AgentRef, AgentSetup, Agents, Profile, Spec};
use context::{Ctx, Scope};
use llm::LlmAdapter;
use serde::{Deserialize, Serialize};
use session::{Contributor, Delegation, Payload, SessionId, Sessions, Snapshot, Stamps};
use session_store::SessionStore;
use system_prompt::Section;
use tokio::runtime::Handle;
use tools::{Tool, ToolFilter};

use super::ledger::Ledger;
use super::model::{self, Model};
use super::probe::{PROBE, Probe};
use super::{Children, Fixture, Task};
use crate::{ChildEnded, ChildStarted, Limits, Request, Run, RunId, RunResult, Start, SubagentProvider, Subagents};

/// What the parent was asked, and what it said, before it delegates.
pub(super) const PARENT_ASKED: &str = "where does the parent come from";
pub(super) const PARENT_SAID: &str = "the parent has its own words";

pub(super) struct World {
    pub(super) app: Scope,
    pub(super) agents: Arc<Agents>,
    pub(super) subagents: Arc<Subagents>,
    pub(super) provider: Arc<dyn SubagentProvider>,
    pub(super) ledger: Ledger,
    pub(super) probe: Arc<Probe>,
    fixture: Arc<dyn Fixture>,
    sessions: Arc<Sessions>,
    news: Arc<Mutex<Vec<Told>>>,
}

/// What the app announced.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Published(SessionId),
    Gone(SessionId),
    Started(Beginning),
    Ended(RunId, Option<SessionId>, RunResult),
}

#[derive(Clone, Debug)]
pub(super) struct Beginning {
    pub(super) run: RunId,
    pub(super) provider: Arc<str>,
    pub(super) parent: SessionId,
    pub(super) child: Option<SessionId>,
    /// How much of the parent's log was durable by then.
    pub(super) durable: u64,
}

/// What there is at one moment.
pub(super) struct Census {
    agents: Vec<SessionId>,
    held: Vec<SessionId>,
    named: Vec<String>,
    outside: Vec<String>,
    tasks: usize,
}

/// A fact on a parent's log, which its children are handed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) n: u64,
}

impl Payload for Note {
    const TAG: &'static str = "contract/note";
    const IGNORABLE: bool = true;
}

struct HandsNotesDown;

impl Contributor for HandsNotesDown {
    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps) {
        if let Some(&Note { n }) = parent.latest() {
            stamps.add(Note { n });
        }
    }
}

impl World {
    pub(super) async fn new(fixture: Arc<dyn Fixture>) -> Self {
        Self::within(fixture, 64).await
    }

    /// With room for so many children at once.
    pub(super) async fn within(fixture: Arc<dyn Fixture>, max_children: u64) -> Self {
        let app = Scope::root("contract");
        let (ledger, probe) = (Ledger::default(), Probe::new());
        app.provide::<dyn SessionStore>(Arc::new(ledger.clone())).expect("the app is empty");
        app.register::<dyn LlmAdapter>(model::PROVIDER, Arc::new(Model)).expect("the app is empty");
        app.register::<dyn Tool>(PROBE, probe.clone()).expect("the app is empty");
        let limits = Limits { max_children: Some(max_children), ..Limits::default() };
        fixture.compose(&app, limits).await.expect("the fixture composes an app");
        let sessions = app.get::<Sessions>().expect("the fixture provides `Sessions`");
        let agents = app.get::<Agents>().expect("the fixture provides `Agents`");
        let subagents = app.get::<Subagents>().expect("the fixture provides `Subagents`");
        assert_eq!(subagents.limits(), limits, "the fixture composes delegation under the limits that it is given");
        let provider = subagents.providers().get(fixture.name()).expect("the fixture registers its provider");
        sessions.learn::<Note>().expect("the tag is the suite's");
        let contributor = sessions.register_contributor(Note::TAG, Arc::new(HandsNotesDown));
        app.own(contributor.expect("the name is the suite's")).expect("the app is open");
        let news = listen(&app, &ledger);
        Self { app, agents, subagents, provider, ledger, probe, fixture, sessions, news }
    }

    /// A parent that has closed a turn, and so has a conversation.
    pub(super) async fn parent(&self) -> Agent {
        let directory = std::env::temp_dir().canonicalize().expect("there is a directory for what is temporary");
        let session = self.sessions.create(directory.to_str().expect("its path is text"));
        let spec = Spec::new(session, Profile::of(model::route(Task::Say(PARENT_SAID))));
        let parent = self.agents.create(&self.app, spec).await.expect("an agent can be created");
        let asked = parent.followup(PARENT_ASKED).expect("it is live").outcome();
        let told = self.soon("the parent's first turn", asked).await.output;
        assert_eq!(told.map(|message| message.text()).as_deref(), Some(PARENT_SAID), "the fixture has a working loop");
        parent
    }

    pub(super) fn name(&self) -> &str {
        self.fixture.name()
    }

    pub(super) fn is_here(&self) -> bool {
        self.fixture.children() == Children::Here
    }

    /// A request for a child that does this, if one could.
    pub(super) fn asks(&self, task: Task) -> Option<Request> {
        self.fixture.request(task)
    }

    /// A request for what every provider has children for.
    pub(super) fn asked(&self, task: Task) -> Request {
        self.asks(task).expect("every fixture has a request for `Task::Say` and for `Task::Hang`")
    }

    pub(super) async fn start(&self, parent: &AgentRef, request: Request) -> Run {
        let starting = self.subagents.start(parent, self.name(), request);
        self.soon("the start", starting).await.expect("the child can be started")
    }

    /// Starts a child and waits for its end.
    pub(super) async fn result(&self, parent: &AgentRef, request: Request) -> (Run, RunResult) {
        let run = self.start(parent, request).await;
        let result = self.soon("the child's end", run.result()).await.clone();
        (run, result)
    }

    pub(super) async fn dispose(&self, run: &Run) {
        self.soon("the disposal", run.dispose()).await.expect("a child goes without a complaint");
    }

    /// What a provider is given, and the scope of the run.
    pub(super) fn direct(&self, parent: &AgentRef, request: Request) -> (Scope, Start) {
        let scope = parent.ctx().child_in("run", self.app.realm().clone()).expect("the parent is live");
        let delegation = Delegation::capture(parent.session()).expect("no contributor panics");
        let (ctx, provider) = (Ctx::clone(&scope), self.name().into());
        (scope, Start { ctx, run: RunId(0), provider, parent: parent.clone(), delegation, request })
    }

    /// Fails where nothing happens.
    pub(super) async fn soon<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        let patience = self.fixture.patience();
        let done = tokio::time::timeout(patience, work).await;
        done.unwrap_or_else(|_| panic!("{what} did not come within {patience:?}"))
    }

    /// Waits for what nobody announces.
    pub(super) async fn eventually(&self, what: &str, mut is: impl FnMut() -> bool) {
        let waiting = async {
            for _ in 0..200 {
                if is() {
                    return;
                }
                tokio::task::yield_now().await;
            }
            while !is() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        self.soon(what, waiting).await;
    }

    pub(super) fn news(&self) -> Vec<Told> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether an agent can be seen.
    pub(super) fn is_live(&self, id: SessionId) -> bool {
        self.agents.get(id).is_some()
    }

    pub(super) fn has_ended(&self, run: RunId) -> bool {
        self.news().iter().any(|told| matches!(told, Told::Ended(of, ..) if *of == run))
    }

    pub(super) fn census(&self) -> Census {
        let realm = self.app.realm();
        let named = |kind: &'static str, names: Vec<Arc<str>>| {
            names.into_iter().map(move |name| format!("the {kind} `{name}`"))
        };
        let named = named("tool", names(realm.all_named::<dyn Tool>()))
            .chain(named("tool filter", names(realm.all_named::<ToolFilter>())))
            .chain(named("section", names(realm.all_named::<dyn Section>())))
            .chain(named("set-up", names(realm.all_named::<dyn AgentSetup>())))
            .chain(named("model provider", names(realm.all_named::<dyn LlmAdapter>())));
        Census {
            agents: self.agents.list().iter().map(AgentRef::id).collect(),
            held: self.ledger.held(),
            named: named.collect(),
            outside: self.fixture.outside(),
            tasks: Handle::current().metrics().num_alive_tasks(),
        }
    }

    /// What there is outside of the app that was not there before.
    pub(super) fn outside_since(&self, before: &Census) -> Vec<String> {
        new(&self.fixture.outside(), &before.outside).cloned().collect()
    }

    /// Waits until there is nothing that was not there before.
    pub(super) async fn quiet(&self, before: &Census, when: &str) {
        let patience = self.fixture.patience();
        let waiting = self.eventually("nothing", || self.census().since(before).is_empty());
        let ended = tokio::time::timeout(patience / 2, waiting).await;
        assert!(ended.is_ok(), "{when}, there is still {}", self.census().since(before).join(", "));
    }

    /// Every run was announced, then its end, each once, about the same child; and whoever was published is gone.
    pub(super) fn assert_paired(&self) {
        let news = self.news();
        for (at, told) in news.iter().enumerate() {
            match told {
                Told::Started(Beginning { run, child, .. }) => {
                    let about = |told: &&Told| matches!(told, Told::Started(of) if of.run == *run);
                    assert_eq!(news.iter().filter(about).count(), 1, "{run} was announced twice");
                    let ends: Vec<_> = news.iter().enumerate().filter(|(_, told)| is_end(told, *run)).collect();
                    let [(end, Told::Ended(_, of, _))] = ends[..] else { panic!("the ends of {run}: {ends:?}") };
                    assert!(at < end && child == of, "{run} ended before it began, or about another child");
                }
                Told::Ended(run, ..) => {
                    let begun = news[..at].iter().any(|told| matches!(told, Told::Started(of) if of.run == *run));
                    assert!(begun, "{run} ended and never began");
                }
                Told::Published(id) => {
                    let gone = news[at..].iter().filter(|told| matches!(told, Told::Gone(of) if of == id)).count();
                    assert_eq!(gone, 1, "the agent {id} was published, and went {gone} times");
                }
                Told::Gone(_) => {}
            }
        }
    }

    /// Closes the app: nobody complains, everything was told by pairs, nothing is left.
    pub(super) async fn close(self) {
        let empty = Census { agents: vec![], held: vec![], named: self.census().named, outside: vec![], tasks: 0 };
        self.soon("the closing of the app", self.app.close()).await.expect("an app closes without a complaint");
        self.quiet(&empty, "after the app was closed").await;
        self.assert_paired();
        let published: Vec<SessionId> = self.news().iter().filter_map(Told::published).collect();
        let stray: Vec<_> = self.ledger.kept().into_iter().filter(|id| !published.contains(id)).collect();
        assert_eq!(stray, [], "logs of agents that nobody ever saw");
    }
}

impl Told {
    pub(super) fn published(&self) -> Option<SessionId> {
        if let Self::Published(id) = self { Some(*id) } else { None }
    }

    pub(super) fn started(&self) -> Option<&Beginning> {
        if let Self::Started(beginning) = self { Some(beginning) } else { None }
    }
}

impl Census {
    /// What there is that was not there before.
    fn since(&self, before: &Self) -> Vec<String> {
        let agents = new(&self.agents, &before.agents).map(|id| format!("the agent {id}"));
        let held = new(&self.held, &before.held).map(|id| format!("the lease on the log {id}"));
        let others = new(&self.named, &before.named).chain(new(&self.outside, &before.outside)).cloned();
        let tasks = self.tasks.saturating_sub(before.tasks);
        let tasks = (tasks > 0).then(|| format!("{tasks} running task(s)"));
        agents.chain(held).chain(others).chain(tasks).collect()
    }
}

fn new<'a, T: PartialEq>(now: &'a [T], before: &'a [T]) -> impl Iterator<Item = &'a T> {
    now.iter().filter(move |it| !before.contains(it))
}

fn names<T: ?Sized>(all: Vec<(Arc<str>, Arc<T>)>) -> Vec<Arc<str>> {
    all.into_iter().map(|(name, _)| name).collect()
}

fn is_end(told: &Told, run: RunId) -> bool {
    matches!(told, Told::Ended(of, ..) if *of == run)
}

fn listen(app: &Scope, ledger: &Ledger) -> Arc<Mutex<Vec<Told>>> {
    let news = Arc::<Mutex<Vec<Told>>>::default();
    let to = || {
        let news = news.clone();
        move |told| news.lock().unwrap_or_else(PoisonError::into_inner).push(told)
    };
    let (published, gone, started, ended, ledger) = (to(), to(), to(), to(), ledger.clone());
    let realm = app.realm();
    let listeners = [
        realm.on(move |AgentPublished(agent)| published(Told::Published(agent.id()))),
        realm.on(move |AgentGone(id)| gone(Told::Gone(*id))),
        realm.on(move |ChildStarted { run, provider, parent, child, .. }| {
            let durable = ledger.log(*parent).map_or(0, |log| log.len());
            let (run, provider, parent, child) = (*run, provider.clone(), *parent, *child);
            started(Told::Started(Beginning { run, provider, parent, child, durable }));
        }),
        realm.on(move |ChildEnded { run, child, result, .. }| ended(Told::Ended(*run, *child, result.clone()))),
    ];
    listeners.into_iter().for_each(|listener| app.own(listener).expect("the app is open"));
    news
}
