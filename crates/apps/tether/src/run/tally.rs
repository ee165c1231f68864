//! What a whole tree of agents cost, and what was denied to it.

use std::sync::{Mutex, PoisonError};

use llm::Usage;
use session::{AssistantMessage, Event, SessionId};
use subagent::{ChildDenial, denial_of};

/// The most denials that are told one by one.
const LIMIT: usize = 1_000;

/// Sums as events come in.
#[derive(Default)]
pub(crate) struct Tally(Mutex<(Usage, Vec<ChildDenial>)>);

impl Tally {
    pub(crate) fn note(&self, session: SessionId, event: &Event) {
        if let Some(AssistantMessage { usage: Some(usage), .. }) = event.get() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0 += *usage;
        } else if let Some(denial) = denial_of(event) {
            self.denied([ChildDenial::in_session(session, denial)]);
        }
    }

    /// What was denied where no log tells of it.
    pub(crate) fn denied(&self, more: impl IntoIterator<Item = ChildDenial>) {
        let denials = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).1;
        let room = LIMIT.saturating_sub(denials.len());
        denials.extend(more.into_iter().take(room));
    }

    pub(crate) fn totals(&self) -> (Usage, Vec<ChildDenial>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
