//! An app whose agents are driven by the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::*;
use async_trait::async_trait;
use context::{BoxError, Boxed, Ctx, Scope};
use llm::{Message, Route, Usage};
use session::{InboxAccepted, Session, SessionId, Sessions, TurnReason, Typed};
use session_store::SessionStore;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Far longer than any of these tests takes, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
}

/// Lets everything that can go on do so, until `done`.
pub(crate) async fn until(done: impl Fn() -> bool) {
    in_time(async {
        while !done() {
            tokio::task::yield_now().await;
        }
    })
    .await
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Everything since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// A registration that notes its withdrawal.
    pub(crate) fn guard(&self, what: &'static str) -> context::Registration {
        let trace = self.clone();
        context::Registration::new(move || trace.note(what))
    }
}

/// A step of a set-up, made of a function.
pub(crate) struct Step<F>(pub(crate) F);

#[async_trait]
impl<F, Fut> AgentSetup for Step<F>
where
    F: Fn(AgentRef) -> Fut + Send + Sync,
    Fut: Future<Output = Result<(), BoxError>> + Send,
{
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        (self.0)(agent.clone()).await
    }
}

pub(crate) fn step<F, Fut>(body: F) -> Arc<dyn AgentSetup>
where
    F: Fn(AgentRef) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    Arc::new(Step(body))
}

/// An app, its agents, and the turns that they open.
pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) agents: Arc<Agents>,
    /// `published ID` and `gone ID`, as they are heard in the app's realm.
    pub(crate) heard: Trace,
    turns: tokio::sync::Mutex<mpsc::UnboundedReceiver<Turn>>,
}

impl Stage {
    /// Without a store.
    pub(crate) fn new() -> Self {
        let stage = Self::without_driver();
        let (open, turns) = mpsc::unbounded_channel();
        stage.app.provide::<dyn AgentDriver>(Arc::new(ByHand { open })).unwrap();
        Self { turns: tokio::sync::Mutex::new(turns), ..stage }
    }

    pub(crate) fn with_store(store: impl SessionStore + 'static) -> Self {
        let stage = Self::new();
        stage.app.provide::<dyn SessionStore>(Arc::new(store)).unwrap();
        stage
    }

    pub(crate) fn without_driver() -> Self {
        let app = Scope::root("app");
        let heard = Trace::default();
        let (published, gone) = (heard.clone(), heard.clone());
        let named = |what: &str, id: SessionId| format!("{what} {id}");
        app.own(app.realm().on(move |AgentPublished(agent)| published.note(named("published", agent.id())))).unwrap();
        app.own(app.realm().on(move |AgentGone(id)| gone.note(named("gone", *id)))).unwrap();
        let (agents, sessions) = (Agents::new(&app), Sessions::new());
        let (_, turns) = mpsc::unbounded_channel();
        Self { app, sessions, agents, heard, turns: tokio::sync::Mutex::new(turns) }
    }

    pub(crate) fn session(&self) -> Session {
        self.sessions.create("/home/me/project")
    }

    pub(crate) fn spec(&self) -> Spec {
        spec_of(self.session())
    }

    /// An agent that the app owns.
    pub(crate) async fn agent(&self) -> Agent {
        self.owned_by(&self.app).await
    }

    pub(crate) async fn owned_by(&self, owner: &Ctx) -> Agent {
        in_time(self.agents.create(owner, self.spec())).await.unwrap()
    }

    /// The next turn that any agent opens.
    pub(crate) async fn turn(&self) -> Turn {
        in_time(async { self.turns.lock().await.recv().await }).await.expect("an agent opens a turn")
    }

    /// Whether no agent has opened a turn.
    pub(crate) fn is_quiet(&self) -> bool {
        self.turns.try_lock().unwrap().is_empty()
    }

    /// Whether nobody can see any agent.
    pub(crate) fn is_deserted(&self) -> bool {
        self.agents.list().is_empty()
    }

    pub(crate) async fn close(self) {
        in_time(self.app.close()).await.unwrap();
    }
}

pub(crate) fn profile() -> Profile {
    Profile::of(Route::new("test", "model"))
}

pub(crate) fn spec_of(session: Session) -> Spec {
    Spec::new(session, profile())
}

/// Opens turns and does with them what the test says.
struct ByHand {
    open: mpsc::UnboundedSender<Turn>,
}

/// An open turn.
pub(crate) struct Turn {
    /// The texts that it begins with.
    pub(crate) said: Vec<String>,
    pub(crate) cancelled: CancellationToken,
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Claim(oneshot::Sender<Vec<String>>),
    End(TurnReason, oneshot::Sender<()>),
}

impl Turn {
    /// Claims what is to be read at the next step.
    pub(crate) async fn next_step(&self) -> Vec<String> {
        let (answer, claimed) = oneshot::channel();
        self.orders.send(Order::Claim(answer)).expect("the driver is there");
        in_time(claimed).await.expect("the driver is there")
    }

    /// Ends it and returns when it is settled.
    pub(crate) async fn end(self, reason: TurnReason) {
        let (answer, ended) = oneshot::channel();
        self.orders.send(Order::End(reason, answer)).expect("the driver is there");
        in_time(ended).await.expect("the driver is there");
    }

    pub(crate) async fn complete(self) {
        self.end(TurnReason::Completed).await;
    }
}

impl AgentDriver for ByHand {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        let open = self.open.clone();
        Box::pin(async move {
            let mut turn = 0;
            while let Some(mut opening) = driven.next_turn().await {
                turn += 1;
                let (orders, mut ordered) = mpsc::unbounded_channel();
                let cancelled = opening.cancelled.clone();
                // A test that is over takes no more turns.
                let _ = open.send(Turn { said: texts(&opening.messages), cancelled, orders });
                let (reason, told) = loop {
                    let order = tokio::select! {
                        biased;
                        order = ordered.recv() => order,
                        () = opening.cancelled.cancelled() => None,
                    };
                    match order {
                        None => break (TurnReason::Aborted { cause: driven.cancel_cause() }, None),
                        Some(Order::End(reason, told)) => break (reason, Some(told)),
                        Some(Order::Claim(answer)) => {
                            let claimed = driven.claim_for_step();
                            answer.send(texts(&claimed)).expect("the test waits");
                            opening.messages.extend(claimed);
                        }
                    }
                };
                let output = Some(Arc::new(Message::assistant(format!("end of turn {turn}"))));
                driven.settle(&opening, TurnOutcome { turn, reason, output, usage: Usage::default() });
                if let Some(told) = told {
                    told.send(()).expect("the test waits");
                }
            }
        })
    }
}

fn texts(messages: &[Typed<InboxAccepted>]) -> Vec<String> {
    messages.iter().map(|accepted| accepted.message.text()).collect()
}

/// The log's events, by type.
pub(crate) fn tags(session: &Session) -> Vec<String> {
    session.snapshot().events().iter().map(|event| event.tag().to_owned()).collect()
}

pub(crate) fn aborted(outcome: &TurnOutcome) -> (u32, &str) {
    match &outcome.reason {
        TurnReason::Aborted { cause: Some(cause) } => (outcome.turn, cause),
        other => panic!("{other:?}"),
    }
}
