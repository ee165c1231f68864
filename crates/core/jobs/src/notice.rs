//! What an agent is told of jobs that ended, and when.
//!
//! Nobody waits here for the agent: whoever has something to tell puts it into the queue, and one of them tells what is
//! in it. What finds no room in the inbox stays there, and is told in one message once something was claimed.

mod text;

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use agent::{AgentRef, Input, PENDING_LIMIT, SendError};
use llm::{Content, Message};
use session::{Delivery, Source};
use tools::ToolFilter;

use crate::JobId;
use crate::own::Own;

pub use text::{NOTICE_LIMIT, NOTICE_TAG};

/// The most bytes that the notices of one step repeat of what jobs said.
pub const NOTICES_LIMIT: usize = 64 * 1024;

/// The tool with which a model reads a job's output, for notices to name. Provided as a service by who offers it.
pub struct Reader(pub Arc<str>);

/// Which ends are still to be told.
#[derive(Default)]
pub(crate) struct Telling {
    waiting: VecDeque<JobId>,
    /// The inbox had no room: the next message tells all of them.
    held_up: bool,
    is_told: IsTold,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum IsTold {
    #[default]
    ByNobody,
    BySomebody,
    /// And there may be room since.
    AndAgain,
}

/// Tells the owner of a job's end, and wakes it: at the next step of the open turn, or in a turn of its own.
pub(crate) fn tell(owner: &AgentRef, own: &Own, job: JobId) {
    lock(own).waiting.push_back(job);
    tell_waiting(owner, own);
}

/// Tells what is still to be told, as far as there is room.
pub(crate) fn tell_waiting(owner: &AgentRef, own: &Own) {
    {
        let mut telling = lock(own);
        if telling.is_told != IsTold::ByNobody {
            telling.is_told = IsTold::AndAgain;
            return;
        }
        telling.is_told = IsTold::BySomebody;
    }
    while let Some(batch) = next(own) {
        let notice = compose(owner, own, &batch);
        let message = Arc::new(Message::user(notice.text));
        match owner.send(Input { message, source: Source::Notice, delivery: Delivery::Steer }) {
            Ok(receipt) => {
                own.told(&notice.told, receipt.id());
                // It may be in a step by now, which the log said before this was noted.
                let waits = owner.session().pending().iter().any(|waiting| waiting.id == receipt.id());
                if !waits {
                    own.claimed(|id| id == receipt.id());
                }
            }
            Err(SendError::Full) => {
                if !goes_on(owner, own, batch) {
                    return;
                }
            }
            // Who is gone has nobody left to be told.
            Err(SendError::Gone) => {}
            Err(error) => {
                tracing::error!(session = %owner.id(), %error, "a notice was not taken on");
                batch.iter().for_each(|id| own.knows(*id));
            }
        }
    }
}

/// What the next message is to tell; with nothing left, nobody tells any more.
fn next(own: &Own) -> Option<Vec<JobId>> {
    let mut telling = lock(own);
    let count = if telling.held_up { telling.waiting.len() } else { telling.waiting.len().min(1) };
    if count == 0 {
        (telling.is_told, telling.held_up) = (IsTold::ByNobody, false);
        return None;
    }
    telling.held_up = false;
    Some(telling.waiting.drain(..count).collect())
}

/// Puts back what found no room. Whether there is room by now: a claim that came meanwhile found somebody telling.
fn goes_on(owner: &AgentRef, own: &Own, batch: Vec<JobId>) -> bool {
    let has_room = owner.session().pending_len() < PENDING_LIMIT;
    let mut telling = lock(own);
    batch.into_iter().rev().for_each(|id| telling.waiting.push_front(id));
    telling.held_up = true;
    let goes_on = has_room || telling.is_told == IsTold::AndAgain;
    telling.is_told = if goes_on { IsTold::BySomebody } else { IsTold::ByNobody };
    goes_on
}

struct Notice {
    text: String,
    /// Of which jobs, and whether it tells all that they said.
    told: Vec<(JobId, bool)>,
}

fn compose(owner: &AgentRef, own: &Own, batch: &[JobId]) -> Notice {
    let reader = reader(owner);
    let mut room = NOTICES_LIMIT.saturating_sub(waiting_bytes(owner));
    let mut notice = Notice { text: String::new(), told: Vec::new() };
    for job in batch.iter().filter_map(|id| own.find(*id)) {
        let output = job.output();
        let (text, is_known) = text::text(&output, reader.as_deref(), room);
        room = room.saturating_sub(text.len());
        if !notice.text.is_empty() {
            notice.text.push('\n');
        }
        notice.text.push_str(&text);
        notice.told.push((job.id, is_known));
    }
    notice
}

/// How many bytes of notices wait for the same step.
fn waiting_bytes(owner: &AgentRef) -> usize {
    let waiting = owner.session().pending();
    let notices = waiting.iter().filter(|waiting| waiting.source == Source::Notice);
    notices.flat_map(|notice| &notice.message.content).filter_map(Content::as_text).map(str::len).sum()
}

/// The reading tool, where the owner may use it.
fn reader(owner: &AgentRef) -> Option<Arc<str>> {
    let tool = owner.ctx().get::<Reader>()?.0.clone();
    let filters = owner.ctx().realm().all_registered::<ToolFilter>();
    filters.iter().all(|filter| filter.admits(&tool)).then_some(tool)
}

fn lock(own: &Own) -> MutexGuard<'_, Telling> {
    own.telling.lock().unwrap_or_else(PoisonError::into_inner)
}
