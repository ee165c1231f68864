//! What was left open is closed: when a log is opened after a crash, and when whoever ran a turn failed in the middle of
//! it. Nothing is truncated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm::Content;

use crate::{
    AssistantMessage, Closed, DamagedPayload, InboxAccepted, InboxClaimed, MessageId, Session, Snapshot, StepEnd,
    StepStart, ToolErrorCode, ToolReturned, TurnEnd, TurnReason, TurnStart, UserMessage,
};

/// The events that close an interrupted turn; nothing if none was open.
pub(crate) struct Closing {
    /// For messages that were claimed for a turn that never began.
    begin: Option<TurnStart>,
    results: Vec<ToolReturned>,
    /// Messages that were claimed and had not entered the conversation.
    entering: Vec<UserMessage>,
    step: Option<StepEnd>,
    turn: Option<TurnEnd>,
}

/// What is open behind the last closed turn, to be closed for `reason`, with `why` as the answer of calls without one.
pub(crate) fn closing_events(log: &Snapshot, reason: &TurnReason, why: &str) -> Result<Closing, DamagedPayload> {
    let mut closing = Closing { begin: None, results: Vec::new(), entering: Vec::new(), step: None, turn: None };
    let (mut claimed, mut entered): (Vec<MessageId>, HashSet<MessageId>) = Default::default();
    // By step too, and counted: some models use the same ids again in every response.
    let mut unanswered: Vec<(u32, u32, Arc<str>)> = Vec::new();
    let mut answers: HashMap<(u32, u32, Arc<str>), usize> = HashMap::new();
    for event in log.events_from(log.closed_len()) {
        if let Some(TurnStart { turn }) = event.decode()? {
            closing.turn = Some(TurnEnd { turn: *turn, reason: reason.clone() });
        } else if let Some(StepStart { turn, step }) = event.decode()? {
            closing.step = Some(StepEnd { turn: *turn, step: *step });
        } else if event.decode::<StepEnd>()?.is_some() {
            closing.step = None;
        } else if let Some(AssistantMessage { turn, step, message, .. }) = event.decode()? {
            unanswered.extend(message.tool_calls().map(|call| (*turn, *step, call.call_id.clone())));
        } else if let Some(result) = event.decode::<ToolReturned>()? {
            *answers.entry((result.turn, result.step, result.call_id.clone())).or_default() += 1;
        } else if let Some(InboxClaimed { ids }) = event.decode()? {
            claimed.extend(ids);
        } else if let Some(UserMessage { id, .. }) = event.decode()? {
            entered.insert(*id);
        }
    }
    claimed.retain(|id| !entered.contains(id));
    closing.entering = accepted(log, &claimed);
    if closing.turn.is_none() && !closing.entering.is_empty() {
        let turn = log.latest::<TurnStart>().map_or(0, |last| last.turn).saturating_add(1);
        closing.begin = Some(TurnStart { turn });
        closing.turn = Some(TurnEnd { turn, reason: reason.clone() });
    }
    unanswered.retain(|call| match answers.get_mut(call) {
        Some(left @ 1..) => {
            *left -= 1;
            false
        }
        Some(0) | None => true,
    });
    closing.results =
        unanswered.into_iter().map(|(turn, step, call_id)| interrupted(turn, step, call_id, why)).collect();
    Ok(closing)
}

impl Closing {
    pub(crate) fn append_to(self, session: &Session) -> Result<(), Closed> {
        if let Some(begin) = self.begin {
            session.append(begin)?;
        }
        for result in self.results {
            session.append(result)?;
        }
        for message in self.entering {
            session.append(message)?;
        }
        if let Some(step) = self.step {
            session.append(step)?;
        }
        if let Some(turn) = self.turn {
            session.append(turn)?;
        }
        Ok(())
    }
}

/// The messages with these ids, from where the log took them on: an id is the `seq` of that event.
fn accepted(log: &Snapshot, ids: &[MessageId]) -> Vec<UserMessage> {
    let accepted = ids.iter().filter_map(|id| log.event(id.0)?.get::<InboxAccepted>());
    let message = |InboxAccepted { id, message, source, .. }: &InboxAccepted| UserMessage {
        id: *id,
        message: message.clone(),
        source: *source,
    };
    accepted.map(message).collect()
}

fn interrupted(turn: u32, step: u32, call_id: Arc<str>, why: &str) -> ToolReturned {
    ToolReturned {
        turn,
        step,
        call_id,
        content: vec![Content::text(why)],
        is_error: true,
        error: Some(ToolErrorCode { code: "interrupted".into() }),
        meta: None,
    }
}
