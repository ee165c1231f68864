//! Who is asked, in which order, and whose answer counts.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use context::{Listeners, Registration};
use futures_util::FutureExt as _;
use session::SessionId;
use tokio_util::sync::CancellationToken;

use crate::{ApprovalAsked, Outcome};

/// A front door that can ask a person.
#[async_trait]
pub trait Answerer: Send + Sync {
    /// Whether it answers for the agent of this session. One that does not is not consulted, and one that no longer does
    /// when it answers has not answered.
    fn owns(&self, session: SessionId) -> bool;

    /// Asks. `None`: nobody answered. Dropped when the turn is cancelled or the answerer is withdrawn; a late answer is
    /// nobody's. It waits without blocking its thread.
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

/// The answerers, oldest first.
#[derive(Default)]
pub(crate) struct Answerers(Listeners<Seat>);

/// One answerer, until it is withdrawn.
struct Seat {
    answerer: Arc<dyn Answerer>,
    gone: CancellationToken,
}

impl Answerers {
    pub(crate) fn add(&self, answerer: Arc<dyn Answerer>) -> Registration {
        let gone = CancellationToken::new();
        let listed = self.0.add(Arc::new(Seat { answerer, gone: gone.clone() }));
        Registration::new(move || {
            drop(listed);
            gone.cancel();
        })
    }

    /// The first owner that answers decides. One that fails has not answered.
    pub(crate) async fn consult(&self, question: &Question) -> Outcome {
        for seat in self.0.all() {
            match AssertUnwindSafe(seat.ask(question)).catch_unwind().await {
                Ok(Some(Answer::AllowOnce)) => return Outcome::AllowedOnce,
                Ok(Some(Answer::Reject)) => return Outcome::Rejected,
                Ok(None) => {}
                Err(_) => tracing::error!(session = %question.session, "an answerer panicked"),
            }
        }
        Outcome::Unavailable
    }
}

impl Seat {
    async fn ask(&self, question: &Question) -> Option<Answer> {
        let owns = || self.answerer.owns(question.session);
        if self.gone.is_cancelled() || !owns() {
            return None;
        }
        let answer = tokio::select! {
            biased;
            () = self.gone.cancelled() => None,
            answer = self.answerer.answer(question) => answer,
        };
        answer.filter(|_| owns())
    }
}
