//! What a child's scope did not allow it: told to the parent by the harness, not left to the child's prose.

use std::sync::Arc;

use llm::Usage;
use sandbox::{Denial, Mode, Operation};
use sandbox_policy::Denied;
use serde::{Deserialize, Serialize};
use session::{Event, Payload, SessionId, Snapshot, ToolReturned};
use tools::code;

use crate::StopReason;

/// How many denials are told one by one.
pub const DENIALS_SHOWN: usize = 20;

/// Denials of a child and its descendants: the first [`DENIALS_SHOWN`], and how many there were.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denials {
    /// The first ones.
    pub list: Vec<ChildDenial>,
    /// All of them.
    pub total: u64,
}

/// One thing that was denied, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildDenial {
    /// Whose call it was.
    pub session: SessionId,
    /// What was tried.
    pub operation: Operation,
    /// On what.
    pub target: String,
    /// Under which mode.
    pub mode: Mode,
}

/// What a delegation tool tells besides its text: the meta of its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegationReport {
    /// Who ran the child.
    pub provider: Arc<str>,
    /// Its session, if it has one in this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// How it ended.
    pub stop_reason: StopReason,
    /// Tokens that it cost.
    pub usage: Usage,
    /// What its scope did not allow it.
    pub denials: Denials,
}

/// The report of a child that went on behind its call, in the log of who delegated: written when the child has ended, in
/// whatever way, whether or not anybody asks what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BackgroundReport(pub DelegationReport);

impl Payload for BackgroundReport {
    const TAG: &'static str = "subagent/report";
    const IGNORABLE: bool = true;
}

impl Denials {
    /// Adds one.
    pub fn push(&mut self, denial: ChildDenial) {
        self.total = self.total.saturating_add(1);
        if self.list.len() < DENIALS_SHOWN {
            self.list.push(denial);
        }
    }

    /// Adds those of a descendant.
    pub fn merge(&mut self, below: Self) {
        let shown = below.list.len() as u64;
        below.list.into_iter().for_each(|denial| self.push(denial));
        self.total = self.total.saturating_add(below.total.saturating_sub(shown));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.total == 0 && self.list.is_empty()
    }
}

impl ChildDenial {
    /// A denial in a session.
    pub fn in_session(session: SessionId, Denial { operation, target, mode }: Denial) -> Self {
        Self { session, operation, target, mode }
    }

    /// Without the session.
    pub fn denial(&self) -> Denial {
        Denial::new(self.operation, self.target.clone(), self.mode)
    }
}

/// What the sandbox did not allow the session itself, if an event tells of that: how a call ended, or what went on behind one.
pub fn denial_of(event: &Event) -> Option<Denial> {
    if let Some(Denied(denial)) = event.get() {
        return Some(denial.clone());
    }
    let result: &ToolReturned = event.get()?;
    let denied = result.error.as_ref().is_some_and(|error| &*error.code == code::SANDBOX_DENIED);
    serde_json::from_str(result.meta.as_ref().filter(|_| denied)?.get()).ok()
}

/// The denials that a log tells of from `from` on: those of its own calls, and those that its children reported, whether
/// they were waited for or not.
pub fn denials_in(log: &Snapshot, from: u64) -> Denials {
    let mut denials = Denials::default();
    for event in log.events_from(from) {
        if let Some(BackgroundReport(report)) = event.get() {
            denials.merge(report.denials.clone());
        }
        if let Some(denial) = denial_of(event) {
            denials.push(ChildDenial::in_session(log.header().id(), denial));
        } else if let Some(Ok(report)) = event
            .get::<ToolReturned>()
            .and_then(|result| result.meta.as_ref())
            .map(|meta| serde_json::from_str::<DelegationReport>(meta.get()))
        {
            denials.merge(report.denials);
        }
    }
    denials
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that somebody wrote may count less than it lists.
    #[test]
    fn what_lists_or_counts_anything_is_not_empty() {
        let empty = Denials::default();
        let counted = Denials { total: 1, ..Denials::default() };
        let denial = Denial::new(sandbox::Operation::Write, "/x", sandbox::Mode::ReadOnly);
        let session = session::Sessions::new().create("/").id();
        let listed = Denials { list: vec![ChildDenial::in_session(session, denial)], ..Denials::default() };
        assert!(empty.is_empty() && !counted.is_empty() && !listed.is_empty());
    }
}
