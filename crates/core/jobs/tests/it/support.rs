//! An app with jobs, and agents that read what they are sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{Agent, AgentDriver, AgentRef, Agents, Driven, Profile, Spec, TurnOutcome};
use context::{Boxed, Plugins, Scope};
use jobs::{Config, JobEnded, JobStarted, JobState, Jobs, JobsPlugin};
use session::{InboxAccepted, Session, SessionId, Sessions, SessionsPlugin, Source, StepEnd};
use tokio::sync::watch;

/// Only a test that hangs meets it, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(600);

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
}

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) agents: Arc<Agents>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) sessions: Arc<Sessions>,
    /// Turns stay open while it says so.
    pub(crate) held: watch::Sender<bool>,
    read: Read,
    told: Arc<Mutex<Vec<String>>>,
}

type Read = watch::Sender<Vec<(SessionId, &'static str, String)>>;

/// Reads what opens a turn; once the turn is not held any more, what came in meanwhile; and ends it.
struct Reads {
    read: Read,
    held: watch::Receiver<bool>,
}

impl AgentDriver for Reads {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        let (read, mut held) = (self.read.clone(), self.held.clone());
        Box::pin(async move {
            while let Some(opening) = driven.next_turn().await {
                let id = driven.agent().id();
                let note = |when, text| read.send_modify(|all| all.push((id, when, text)));
                opening.messages.iter().for_each(|message| note("turn", message.message.text()));
                let stepped = |step| driven.agent().session().append(StepEnd { turn: 1, step });
                let cancelled = opening.cancelled.clone();
                if cancelled.run_until_cancelled(held.wait_for(|held| !held)).await.is_some() {
                    let _ = stepped(1);
                    driven.claim_for_step().iter().for_each(|message| note("step", message.message.text()));
                    let _ = stepped(2);
                }
                driven.settle(&opening, TurnOutcome::completed(1, None));
            }
        })
    }
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let app = Scope::root("app");
        let (held, read) = (watch::Sender::new(false), Read::default());
        app.provide::<dyn AgentDriver>(Arc::new(Reads { read: read.clone(), held: held.subscribe() })).unwrap();
        Plugins::new().with(SessionsPlugin, ()).with(JobsPlugin, config).start(&app).await.unwrap();
        let (agents, jobs, sessions) = (Agents::new(&app), app.get().unwrap(), app.get().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let note = told.clone();
        let started = move |JobStarted { job, .. }: &JobStarted| note.lock().unwrap().push(format!("{job} starts"));
        app.own(app.realm().on(started)).unwrap();
        let note = told.clone();
        let ended = move |JobEnded { job, .. }: &JobEnded| {
            note.lock().unwrap().push(format!("{job} {}", job.state.as_str()));
        };
        app.own(app.realm().on(ended)).unwrap();
        Self { app, agents, jobs, sessions, held, read, told }
    }

    pub(crate) async fn agent(&self) -> Agent {
        self.agent_of(self.sessions.create("/home/me")).await
    }

    pub(crate) async fn agent_of(&self, session: Session) -> Agent {
        let spec = Spec::new(session, Profile::of("offline/script".parse().unwrap()));
        self.agents.create(&self.app, spec).await.unwrap()
    }

    /// What was announced so far.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    /// What an agent read so far, and when: as the opening of a turn, or at a step of it.
    pub(crate) fn read(&self, agent: &AgentRef) -> Vec<(&'static str, String)> {
        let mine =
            |(id, when, text): &(SessionId, &'static str, String)| (*id == agent.id()).then(|| (*when, text.clone()));
        self.read.borrow().iter().filter_map(mine).collect()
    }

    /// Waits until something was read so often.
    pub(crate) async fn readings(&self, count: usize) {
        in_time(self.read.subscribe().wait_for(|all| all.len() >= count)).await.unwrap();
    }

    pub(crate) fn states(&self, agent: &AgentRef) -> Vec<JobState> {
        self.jobs.list(agent).iter().map(|job| job.state).collect()
    }

    pub(crate) async fn settled(&self, agent: &AgentRef) {
        in_time(self.jobs.settled(agent)).await;
    }
}

/// The notices in an agent's log, oldest first.
pub(crate) fn notices(session: &Session) -> Vec<String> {
    let log = session.snapshot();
    let accepted = log.events().iter().filter_map(|event| event.get::<InboxAccepted>());
    accepted.filter(|message| message.source == Source::Notice).map(|message| message.message.text()).collect()
}
