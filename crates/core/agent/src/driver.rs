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
                // Only now: whoever cancels before the claim finds this turn, and discards what it would begin with.
                let messages = self.claim(with_first_waker)?;
                if !messages.is_empty() {
                    return Some(Opening { messages, cancelled });
                }
                self.agent.withdraw_turn();
            }
            closing.run_until_cancelled(self.agent.woken()).await?;
        }
    }

    /// Claims what is to be read at the next step of the open turn.
    pub fn claim_for_step(&self) -> Vec<Typed<InboxAccepted>> {
        self.claim(|waiting| waiting.retain(|message| message.delivery != Delivery::Followup)).unwrap_or_default()
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

    /// Claims what `choose` leaves of the messages that wait. `None`: the log is closed.
    fn claim(&self, choose: impl FnOnce(&mut Vec<Typed<InboxAccepted>>)) -> Option<Vec<Typed<InboxAccepted>>> {
        let mut claimed = Vec::new();
        let append = |mut waiting| {
            choose(&mut waiting);
            claimed = waiting;
            let ids: Vec<_> = claimed.iter().map(|message| message.id).collect();
            (!ids.is_empty()).then_some(InboxClaimed { ids })
        };
        self.agent.session().append_of_pending(append).ok()?;
        Some(claimed)
    }
}

/// The first that opens a turn, and all that go with whatever does. Nothing if there is no such first.
fn with_first_waker(waiting: &mut Vec<Typed<InboxAccepted>>) {
    match waiting.iter().find(|message| message.delivery != Delivery::Inject).map(|first| first.id) {
        Some(opener) => waiting.retain(|message| message.id == opener || message.delivery == Delivery::Inject),
        None => waiting.clear(),
    }
}

impl Drop for Driven {
    /// However the driver ended, a panic included, nobody waits for an agent without one.
    fn drop(&mut self) {
        self.agent.end();
    }
}
