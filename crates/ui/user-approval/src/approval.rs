use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use context::{Listeners, Registration};
use futures_util::FutureExt as _;
use session::{Closed, FlushError, Session, SessionId, TurnEnd, TurnStart};
use tokio_util::sync::CancellationToken;

use crate::{ApprovalAsked, ApprovalDecided, Outcome, Policy, PolicySet, RequestId};

/// The service that every ask goes through.
pub struct Approval {
    default: Policy,
    answerers: Listeners<dyn Answerer>,
}

/// A front door that can ask a person.
#[async_trait]
pub trait Answerer: Send + Sync {
    /// Whether it answers for the agent of this session. One that does not is not consulted.
    fn owns(&self, session: SessionId) -> bool;

    /// Asks. `None`: nobody answered. Dropped when the turn is cancelled; a late answer is nobody's.
    async fn answer(&self, question: &Question) -> Option<Answer>;
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Whose agent asks.
    pub session: SessionId,
    /// What it asks.
    pub asked: ApprovalAsked,
}

/// What a person answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call, once.
    AllowOnce,
    /// No.
    Reject,
}

/// What a tool wants to be allowed.
#[derive(Clone, Debug)]
pub struct Ask {
    tool: Arc<str>,
    call_id: Option<Arc<str>>,
    reason: Arc<str>,
    justification: Option<Arc<str>>,
}

/// An ask that could not be made. It permits nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskError {
    /// Asks belong to turns.
    #[error("no turn is open: only an agent at work may ask")]
    NoTurn,
    /// The audit could not be written: the session takes nothing more.
    #[error("the ask could not be audited: {0}")]
    Audit(#[from] Closed),
    /// The audit could not be made durable.
    #[error("the answer could not be audited: {0}")]
    Flush(#[from] FlushError),
}

impl Ask {
    /// An ask of a tool for the exact operation that `reason` names.
    pub fn new(tool: impl Into<Arc<str>>, reason: impl Into<Arc<str>>) -> Self {
        Self { tool: tool.into(), call_id: None, reason: reason.into(), justification: None }
    }

    /// With why the model wants it, in its own words.
    #[must_use]
    pub fn because(mut self, justification: impl Into<Arc<str>>) -> Self {
        self.justification = Some(justification.into());
        self
    }

    /// With the call that asks.
    #[must_use]
    pub fn for_call(mut self, call_id: &Arc<str>) -> Self {
        self.call_id = Some(call_id.clone());
        self
    }
}

impl Approval {
    /// A service with a deployment default.
    pub fn new(default: Policy) -> Arc<Self> {
        Arc::new(Self { default, answerers: Listeners::default() })
    }

    /// What sessions without an override follow.
    pub fn default_policy(&self) -> Policy {
        self.default
    }

    /// The policy of a session at this moment: its last override, or the deployment default.
    pub fn effective(&self, session: &Session) -> Policy {
        session.latest::<PolicySet>().map_or(self.default, |set| set.policy)
    }

    /// From now on `answerer` is consulted for the agents that it owns, after those before it.
    pub fn answer_with(&self, answerer: Arc<dyn Answerer>) -> Registration {
        self.answerers.add(answerer)
    }

    /// Asks, and writes the audit pair. `never` is decided here, before any answerer is consulted. A permission is
    /// durable in the log before it is given.
    pub async fn request(
        &self,
        session: &Session,
        ask: Ask,
        cancelled: &CancellationToken,
    ) -> Result<Outcome, AskError> {
        if !has_open_turn(session) {
            return Err(AskError::NoTurn);
        }
        let Ask { tool, call_id, reason, justification } = ask;
        let reason = Some(reason);
        let asked = |seq| ApprovalAsked { request_id: RequestId(seq), tool, call_id, reason, justification };
        let mut noted = None;
        session.append_with(|seq| noted.insert(asked(seq)).clone())?;
        let asked = noted.expect("set by the append that succeeded");
        let undecided = Undecided { session, request_id: asked.request_id, written: false };
        let outcome = match self.effective(session) {
            Policy::Never => Outcome::Rejected,
            Policy::Ask => {
                let question = Question { session: session.id(), asked };
                tokio::select! {
                    biased;
                    () = cancelled.cancelled() => Outcome::Cancelled,
                    outcome = self.consult(&question) => outcome,
                }
            }
        };
        undecided.decide(outcome)?;
        if outcome == Outcome::AllowedOnce {
            session.flush().await?;
        }
        Ok(outcome)
    }

    async fn consult(&self, question: &Question) -> Outcome {
        for answerer in self.answerers.all() {
            let answering = async {
                match answerer.owns(question.session) {
                    true => answerer.answer(question).await,
                    false => None,
                }
            };
            match AssertUnwindSafe(answering).catch_unwind().await {
                Ok(Some(Answer::AllowOnce)) => return Outcome::AllowedOnce,
                Ok(Some(Answer::Reject)) => return Outcome::Rejected,
                Ok(None) => {}
                Err(_) => tracing::error!(session = %question.session, "an answerer panicked"),
            }
        }
        Outcome::Unavailable
    }
}

/// An ask whose decision is still to be written. One that is dropped was withdrawn.
struct Undecided<'a> {
    session: &'a Session,
    request_id: RequestId,
    written: bool,
}

impl Undecided<'_> {
    fn decide(mut self, outcome: Outcome) -> Result<(), Closed> {
        self.written = true;
        self.session.append(ApprovalDecided { request_id: self.request_id, outcome })?;
        Ok(())
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        if !self.written {
            // A closed session takes no decision either; the ask permits nothing without one.
            let _ = self.session.append(ApprovalDecided { request_id: self.request_id, outcome: Outcome::Cancelled });
        }
    }
}

fn has_open_turn(session: &Session) -> bool {
    let log = session.snapshot();
    match (log.latest_event::<TurnStart>(), log.latest_event::<TurnEnd>()) {
        (Some(start), Some(end)) => start.seq() > end.seq(),
        (Some(_), None) => true,
        (None, _) => false,
    }
}
