use std::sync::Arc;

use context::Boxed;
use session::{Delivery, InboxAccepted, InboxClaimed, MessageId, Typed};
use tokio_util::sync::CancellationToken;

use crate::{AgentRef, TurnOutcome};

/// What turns an agent's messages into turns. One is provided as `dyn AgentDriver` in the app's realm.
pub trait AgentDriver: Send + Sync {
    /// Serves one agent until [`Driven::next_turn`] answers `None`. Runs in the agent's own task.
    fn drive(&self, driven: Driven) -> Boxed<'static, ()>;
}

/// The driver's side of an agent: only the driver claims messages and opens and closes turns.
pub struct Driven {
    agent: AgentRef,
}

/// A turn that has begun: its messages are claimed.
pub struct Opening {
    /// What it begins with, in the order in which it was accepted.
    pub messages: Vec<Typed<InboxAccepted>>,
    /// Fires when the turn is to stop.
    pub cancelled: CancellationToken,
}

impl Driven {
    pub(crate) fn new(agent: AgentRef) -> Self {
        Self { agent }
    }

    /// The agent.
    pub fn agent(&self) -> &AgentRef {
        &self.agent
    }

    /// Waits for a message that opens a turn and claims it, with the quiet ones that wait. `None`: the agent is ending.
    pub async fn next_turn(&self) -> Option<Opening> {
        let closing = self.agent.ctx().cancelled();
        loop {
            if closing.is_cancelled() {
                return None;
            }
            if self.agent.has_waker() {
                let cancelled = self.agent.open_turn();
                // Looked at only now: what is discarded from here on stops this turn, what was before is not here.
                let pending = self.agent.session().pending();
                let opener = pending.iter().find(|waiting| waiting.delivery != Delivery::Inject).map(|first| first.id);
                if let Some(opener) = opener {
                    let takes = |waiting: &InboxAccepted| waiting.id == opener || waiting.delivery == Delivery::Inject;
                    return Some(Opening { messages: self.claim(pending, takes)?, cancelled });
                }
                self.agent.withdraw_turn();
            }
            closing.run_until_cancelled(self.agent.woken()).await?;
        }
    }

    /// Claims what is to be read at the next step of the open turn.
    pub fn claim_for_step(&self) -> Vec<Typed<InboxAccepted>> {
        let pending = self.agent.session().pending();
        if pending.is_empty() {
            return pending;
        }
        self.claim(pending, |waiting| waiting.delivery != Delivery::Followup).unwrap_or_default()
    }

    /// Why the open turn was cancelled, if somebody said so.
    pub fn cancel_cause(&self) -> Option<Arc<str>> {
        self.agent.cancel_cause()
    }

    /// Closes the turn and tells those who wait for the messages that it began with, or took in on the way.
    pub fn settle(&self, opening: &Opening, outcome: TurnOutcome) {
        let ids: Vec<MessageId> = opening.messages.iter().map(|message| message.id).collect();
        self.agent.close_turn(&ids, &outcome);
    }

    fn claim(
        &self,
        mut pending: Vec<Typed<InboxAccepted>>,
        take: impl Fn(&InboxAccepted) -> bool,
    ) -> Option<Vec<Typed<InboxAccepted>>> {
        pending.retain(|waiting| take(waiting));
        if !pending.is_empty() {
            let ids = pending.iter().map(|claimed| claimed.id).collect();
            self.agent.session().append(InboxClaimed { ids }).ok()?;
        }
        Some(pending)
    }
}

impl Drop for Driven {
    /// However the driver ended, a panic included, nobody waits for an agent without one.
    fn drop(&mut self) {
        self.agent.end();
    }
}
