//! What was left open is closed: when a log is opened after a crash, and when whoever ran a turn failed in the middle of
//! it. Nothing is truncated.

use std::collections::HashMap;
use std::sync::Arc;

use llm::Content;

use crate::{
    AssistantMessage, Closed, DamagedPayload, Session, Snapshot, StepEnd, StepStart, ToolErrorCode, ToolReturned,
    TurnEnd, TurnReason, TurnStart,
};

/// The events that close an interrupted turn; nothing if none was open.
pub(crate) struct Closing {
    results: Vec<ToolReturned>,
    step: Option<StepEnd>,
    turn: Option<TurnEnd>,
}

/// What is open behind the last closed turn, to be closed for `reason`, with `why` as the answer of calls without one.
pub(crate) fn closing_events(log: &Snapshot, reason: &TurnReason, why: &str) -> Result<Closing, DamagedPayload> {
    let mut closing = Closing { results: Vec::new(), step: None, turn: None };
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
        }
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
        for result in self.results {
            session.append(result)?;
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
