use std::pin::pin;
use std::sync::Arc;

use context::Registration;
use session::{Closed, FlushError, Session, Snapshot, TurnEnd, TurnStart};
use tokio_util::sync::CancellationToken;

use crate::answerers::Answerers;
use crate::{Answerer, ApprovalAsked, ApprovalDecided, Outcome, Policy, PolicySet, Question, RequestId};

/// The service that every ask goes through.
pub struct Approval {
    default: Policy,
    answerers: Answerers,
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
        Arc::new(Self { default, answerers: Answerers::default() })
    }

    /// What sessions without an override follow.
    pub fn default_policy(&self) -> Policy {
        self.default
    }

    /// The policy of a session at this moment: its last override, or the deployment default.
    pub fn effective(&self, session: &Session) -> Policy {
        self.effective_in(&session.snapshot())
    }

    /// The policy of a session as it was at one instant.
    pub fn effective_in(&self, log: &Snapshot) -> Policy {
        log.latest::<PolicySet>().map_or(self.default, |set| set.policy)
    }

    /// From now on `answerer` is consulted for the agents that it owns, after those before it. Withdrawing it ends what it
    /// is being asked, unanswered.
    pub fn answer_with(&self, answerer: Arc<dyn Answerer>) -> Registration {
        self.answerers.add(answerer)
    }

    /// Asks, and writes the audit pair. `never` is decided here, before any answerer is consulted. A permission is
    /// durable in the log before it is given, and is given to the turn that asked for it and to no later one.
    pub async fn request(
        &self,
        session: &Session,
        ask: Ask,
        cancelled: &CancellationToken,
    ) -> Result<Outcome, AskError> {
        let turn = open_turn(&session.snapshot()).ok_or(AskError::NoTurn)?;
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
                let answered = tokio::select! {
                    biased;
                    () = cancelled.cancelled() => Outcome::Cancelled,
                    // Whoever looks at the log while a person thinks finds the question.
                    outcome = meanwhile(self.answerers.consult(&question), session.flush()) => outcome,
                };
                match answered {
                    Outcome::AllowedOnce => self.by_then(&session.snapshot(), turn),
                    Outcome::Rejected | Outcome::Cancelled | Outcome::Unavailable => answered,
                }
            }
        };
        undecided.decide(outcome)?;
        if outcome == Outcome::AllowedOnce {
            // Somebody said yes, and the log says so; a turn that is cancelled before it is durable makes no use of it.
            return tokio::select! {
                biased;
                () = cancelled.cancelled() => Ok(Outcome::Cancelled),
                flushed = session.flush() => Ok(flushed.map(|()| outcome)?),
            };
        }
        Ok(outcome)
    }

    /// What has become of a permission while somebody thought about it.
    fn by_then(&self, log: &Snapshot, turn: u64) -> Outcome {
        if open_turn(log) != Some(turn) {
            return Outcome::Cancelled;
        }
        match self.effective_in(log) {
            Policy::Ask => Outcome::AllowedOnce,
            Policy::Never => Outcome::Rejected,
        }
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

/// Does `work`, and as much of `other` as there is time for while it waits.
async fn meanwhile<T>(work: impl Future<Output = T>, other: impl Future) -> T {
    let (mut work, mut other, mut done) = (pin!(work), pin!(other), false);
    loop {
        tokio::select! {
            biased;
            made = &mut work => return made,
            _ = &mut other, if !done => done = true,
        }
    }
}

/// The `seq` at which the open turn began.
fn open_turn(log: &Snapshot) -> Option<u64> {
    let start = log.latest_event::<TurnStart>()?.seq();
    let ended = log.latest_event::<TurnEnd>().is_some_and(|end| end.seq() > start);
    (!ended).then_some(start)
}
