//! When an agent is there for others, and when its session is free again.

use std::sync::{Arc, Mutex};

use agent::{AgentDriver, AgentGone, AgentPublished, AgentRef, Agents, CreateError, Driven};
use context::{Boxed, Scope};
use session::{SessionId, Sessions};
use session_store::{OpenError, SessionStore};
use tokio::sync::Notify;

use crate::support::{App, Disk, inbox, knows, reopened, spec, until, within};

/// An owner of agents that one of them may close.
type Owner = Arc<Mutex<Option<Scope>>>;

fn owner(app: &App) -> Owner {
    Arc::new(Mutex::new(Some(app.scope.child("owner").unwrap())))
}

/// Creates an agent whose owner is closed while it is announced, by `announced`; it was announced, so it is no failure.
async fn create_while_its_owner_closes(
    app: &App,
    owner: &Owner,
    announced: impl Fn(&AgentRef) + Send + Sync + 'static,
) -> AgentRef {
    let gone = Arc::new(Mutex::new(Vec::<SessionId>::new()));
    let note = gone.clone();
    let _gone = app.scope.realm().on(move |&AgentGone(id): &AgentGone| note.lock().unwrap().push(id));
    let unheard = gone.clone();
    let _published = app.scope.realm().on(move |AgentPublished(agent): &AgentPublished| {
        agent.followup("accepted").unwrap();
        announced(agent);
        assert!(unheard.lock().unwrap().is_empty(), "that it is gone is told when that it is there was told");
    });
    let session = app.session();
    let creating = app.agents.create(owner.lock().unwrap().as_ref().unwrap(), spec(&session, "polite/model"));
    let agent = creating.await.expect("what was announced is not rolled back").leave();
    agent.ctx().closed().await;
    assert_eq!(*gone.lock().unwrap(), [agent.id()]);
    agent
}

// D-11, D-49
#[tokio::test]
async fn an_agent_that_was_announced_is_never_rolled_back() {
    within(async {
        let (app, disk) = App::on_disk().await;
        let owner = owner(&app);
        let closing = owner.clone();
        let agent = create_while_its_owner_closes(&app, &owner, move |agent| {
            drop(closing.lock().unwrap().take());
            assert!(agent.ctx().cancelled().is_cancelled());
        })
        .await;
        assert!(knows(&reopened(&disk, &agent).await, "accepted"));
        app.close().await;
    })
    .await;
}

// D-11, D-49
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_withdrawn_while_it_is_announced_keeps_its_log() {
    within(async {
        let (app, disk) = App::on_disk().await;
        let owner = owner(&app);
        let (closing, agents, store) = (owner.clone(), app.agents.clone(), disk.store.clone());
        let agent = create_while_its_owner_closes(&app, &owner, move |agent| {
            let (runtime, agent) = (tokio::runtime::Handle::current(), agent.clone());
            tokio::task::block_in_place(|| {
                runtime.block_on(within(async {
                    agent.session().flush().await.unwrap();
                    assert!(store.path(agent.id()).exists(), "accepted and durable");
                    drop(closing.lock().unwrap().take());
                    until(|| agents.get(agent.id()).is_none()).await;
                }));
            });
        })
        .await;
        assert!(knows(&reopened(&disk, &agent).await, "accepted"));
        app.close().await;
    })
    .await;
}

/// Goes on after its agent was closed, until it is let go.
#[derive(Clone, Default)]
struct Stubborn {
    began: Arc<Notify>,
    release: Arc<Notify>,
}

impl AgentDriver for Stubborn {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        let Self { began, release } = self.clone();
        Box::pin(async move {
            began.notify_one();
            release.notified().await;
            drop(driven);
        })
    }
}

// D-25
#[tokio::test]
async fn a_session_has_one_driver_until_its_log_is_let_go_of() {
    within(async {
        let (scope, disk, driver) = (Scope::root("app"), Disk::new(), Stubborn::default());
        scope.provide::<dyn AgentDriver>(Arc::new(driver.clone())).unwrap();
        scope.provide::<dyn SessionStore>(disk.store.clone()).unwrap();
        let (sessions, agents) = (Sessions::new(), Agents::new(&scope));
        let session = sessions.create("/home/me/project");
        let id = session.id();
        let first = agents.create(&scope, spec(&session, "no/model")).await.unwrap();
        first.followup("wait for it").unwrap();
        session.flush().await.unwrap();
        driver.began.notified().await;

        let closing = first.handle().ctx().clone();
        drop(first);
        until(|| agents.get(id).is_none()).await;
        let second = agents.create(&scope, spec(&session, "no/model")).await;
        assert!(matches!(second, Err(CreateError::AlreadyLive)), "its driver still runs");
        assert!(matches!(disk.store.open(&sessions, id).await, Err(OpenError::Busy(_))));

        driver.release.notify_one();
        closing.closed().await;
        let opened = disk.store.open(&sessions, id).await.unwrap().session;
        assert_eq!(inbox(&opened), ["wait for it"]);
        let second = agents.create(&scope, spec(&opened, "no/model")).await.unwrap();
        driver.began.notified().await;
        driver.release.notify_one();
        second.dispose().await.unwrap();
        scope.close().await.unwrap();
    })
    .await;
}
