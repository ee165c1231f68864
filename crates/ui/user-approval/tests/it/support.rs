//! An app with the service, and answerers made of functions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use context::{Boxed, Plugins, Scope};
use session::*;
use tokio::sync::oneshot;
use user_approval::*;

/// Far longer than any of these tests takes, in real time or in paused time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Turns a hang into a failure.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("it should not hang")
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
}

type Answering = dyn Fn(Question) -> Boxed<'static, Option<Answer>> + Send + Sync;

/// Notes whenever it is consulted.
pub(crate) struct Fake {
    name: &'static str,
    trace: Trace,
    owns: Box<dyn Fn(SessionId) -> bool + Send + Sync>,
    answers: Box<Answering>,
}

#[async_trait]
impl Answerer for Fake {
    fn owns(&self, session: SessionId) -> bool {
        self.trace.note(format!("{} owns?", self.name));
        (self.owns)(session)
    }

    async fn answer(&self, question: &Question) -> Option<Answer> {
        self.trace.note(format!("{} asked", self.name));
        (self.answers)(question.clone()).await
    }
}

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) approval: Arc<Approval>,
    /// Who was consulted.
    pub(crate) consulted: Trace,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with_default(Policy::Ask).await
    }

    pub(crate) async fn with_default(default: Policy) -> Self {
        let app = Scope::root("app");
        let sessions = Sessions::new();
        app.provide(sessions.clone()).unwrap();
        Plugins::new().with(UserApprovalPlugin, Config { default }).start(&app).await.unwrap();
        let approval = app.get::<Approval>().unwrap();
        Self { app, sessions, approval, consulted: Trace::default() }
    }

    /// A session with an open turn.
    pub(crate) fn session(&self) -> Session {
        let session = self.sessions.create("/home/me/project");
        session.append(TurnStart { turn: 1 }).unwrap();
        session
    }

    /// Adds an answerer for everybody.
    pub(crate) fn answerer<F>(&self, name: &'static str, answers: impl Fn(Question) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.answerer_for(name, |_| true, answers);
    }

    pub(crate) fn answerer_for<F>(
        &self,
        name: &'static str,
        owns: impl Fn(SessionId) -> bool + Send + Sync + 'static,
        answers: impl Fn(Question) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Option<Answer>> + Send + 'static,
    {
        self.app.own(self.approval.answer_with(self.fake(name, owns, answers))).unwrap();
    }

    /// An answerer that is not registered yet.
    pub(crate) fn fake<F>(
        &self,
        name: &'static str,
        owns: impl Fn(SessionId) -> bool + Send + Sync + 'static,
        answers: impl Fn(Question) -> F + Send + Sync + 'static,
    ) -> Arc<Fake>
    where
        F: Future<Output = Option<Answer>> + Send + 'static,
    {
        let answers = Box::new(move |question| -> Boxed<'static, Option<Answer>> { Box::pin(answers(question)) });
        Arc::new(Fake { name, trace: self.consulted.clone(), owns: Box::new(owns), answers })
    }

    /// An answerer for everybody that says what is sent, once.
    pub(crate) fn slow(&self, name: &'static str) -> (oneshot::Sender<Answer>, Arc<Fake>) {
        let (says, said) = oneshot::channel();
        let said = Mutex::new(Some(said));
        let answers = move |_| {
            let said = said.lock().unwrap().take().expect("it is asked once");
            async { said.await.ok() }
        };
        (says, self.fake(name, |_| true, answers))
    }

    /// Adds an answerer that allows everybody everything.
    pub(crate) fn generous(&self) {
        self.answerer("generous", async |_| Some(Answer::AllowOnce));
    }

    pub(crate) async fn request(&self, session: &Session) -> Result<Outcome, AskError> {
        in_time(self.approval.request(session, ask(), self.app.cancelled())).await
    }

    pub(crate) async fn close(self) {
        in_time(self.app.close()).await.unwrap();
    }
}

pub(crate) fn ask() -> Ask {
    Ask::new("write", "write /etc/hosts under danger-full-access: to block ads")
}

/// The audit in a log: `asked ID` and `decided ID OUTCOME`, at which `seq`.
pub(crate) fn audit(session: &Session) -> Vec<String> {
    let log = session.snapshot();
    let told = log.events().iter().filter_map(|event| {
        let seq = event.seq();
        if let Some(ApprovalAsked { request_id, .. }) = event.get() {
            return Some(format!("{seq}: asked {}", request_id.0));
        }
        let ApprovalDecided { request_id, outcome } = event.get()?;
        Some(format!("{seq}: decided {} {outcome:?}", request_id.0))
    });
    told.collect()
}

/// The log's events, a line each, without their times.
pub(crate) fn lines(session: &Session) -> Vec<String> {
    let line = |event: &Event| {
        let line = event.to_json();
        let data = line.split_once(r#""data":"#).unwrap().1;
        format!("{} {}", event.tag(), &data[..data.len() - 1])
    };
    session.snapshot().events().iter().map(line).collect()
}

pub(crate) fn end_turn(session: &Session) {
    session.append(TurnEnd { turn: 1, reason: TurnReason::Completed }).unwrap();
}

pub(crate) fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).unwrap(), seed)
}

/// Written and read again, then opened in the same house.
pub(crate) fn reopened(session: &Session) -> Result<Session, Box<dyn std::error::Error>> {
    let log = session.snapshot();
    let mut text = serde_json::to_string(&**log.header())?;
    for event in log.events().iter() {
        text += "\n";
        text += &event.to_json();
    }
    Ok(session.house().resume(session.house().vocabulary().decode(text + "\n")?)?)
}
