//! Waiting for an agent until its jobs are done too.

use agent::{AgentRef, TurnOutcome};
use llm::Usage;
use session::{AssistantMessage, Event, Session, TurnEnd, TurnStart};
use tokio_util::sync::CancellationToken;

use crate::service::own;
use crate::{Jobs, notice};

impl Jobs {
    /// Waits while an owner has jobs, for their notices and the turns that these cause; at once if it is idle and has
    /// none. Ends with the first turn, from the last one that closed on, after which it is not to go on, whatever still
    /// runs then.
    pub async fn finished(&self, owner: &AgentRef, goes_on: impl Fn(&TurnEnd) -> bool + Send + Sync + 'static) {
        let over = CancellationToken::new();
        let last = owner.session().latest::<TurnEnd>().map_or(0, |last| last.event().seq());
        let ends = over.clone();
        let _watching = owner.session().observe(last, move |event| {
            if event.get::<TurnEnd>().is_some_and(|end| !goes_on(end)) {
                ends.cancel();
            }
        });
        let quiet = async {
            loop {
                self.settled(owner).await;
                owner.when_idle().await;
                if let Some(own) = own(owner) {
                    // What has room by now: who observes the claim that made it may not have come to it yet.
                    notice::tell_waiting(owner, &own);
                }
                if self.running(owner) == 0 && owner.is_idle() {
                    return;
                }
            }
        };
        // `None` if a turn said so.
        let _ = over.run_until_cancelled(quiet).await;
    }
}

/// What came of the turns of a log from `first` on: the end of the last, the last text that was said, and what all of them
/// cost.
pub fn last_turn(session: &Session, first: TurnOutcome) -> TurnOutcome {
    let log = session.snapshot();
    let Some(end) = log.latest::<TurnEnd>().filter(|end| end.turn > first.turn) else { return first };
    let is_first = |event: &&Event| event.get::<TurnStart>().is_some_and(|start| start.turn == first.turn);
    let (mut output, mut usage) = (None, Usage::default());
    for said in log.events().iter().rev().take_while(|event| !is_first(event)).filter_map(|event| event.get()) {
        let AssistantMessage { turn, message, usage: cost, .. } = said;
        if *turn > end.turn {
            continue;
        }
        if *turn > first.turn {
            usage += cost.unwrap_or_default();
        }
        if output.is_none() && !message.text().is_empty() {
            output = Some(message.clone());
        }
    }
    usage += first.usage;
    TurnOutcome { turn: end.turn, reason: end.reason.clone(), output, usage }
}
