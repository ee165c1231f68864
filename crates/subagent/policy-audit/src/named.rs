//! The children that a log names: in what answered the calls that started them, and in what was told of them later.

use std::collections::HashMap;

use serde::Deserialize;
use session::{SessionId, Snapshot, ToolCalled, ToolReturned, TurnStart};
use session_store::ReadError;
use subagent::{BackgroundReport, DelegationReport};

use crate::tree::Tree;
use crate::{Code, Finding, Logs};

/// Every child that a log's own events name, by the first of them: nobody knows a child's id before it was made.
pub(crate) struct Named(HashMap<SessionId, Mention>);

/// The first event that names a child.
#[derive(Clone, Copy)]
pub(crate) struct Mention {
    pub(crate) seq: u64,
    /// The call that started the child, if the event answers it.
    pub(crate) call: Option<u64>,
}

/// What is asked of a call that may have started a child in the background.
#[derive(Deserialize)]
struct Background {
    run_in_background: bool,
}

impl Named {
    /// What a fork copied names the children of others.
    pub(crate) fn of(log: &Snapshot) -> Self {
        let (mut named, mut open) = (Self(HashMap::new()), HashMap::new());
        for event in log.events_from(log.header().seed_length()) {
            if let Some(call) = event.get::<ToolCalled>() {
                open.entry(&*call.call_id).or_insert((event.seq(), call));
            } else if let Some(result) = event.get::<ToolReturned>() {
                let call = open.remove(&*result.call_id);
                if let Some((child, call)) = in_result(result, call) {
                    named.met(child, Mention { seq: event.seq(), call });
                }
            } else if let Some(BackgroundReport(DelegationReport { child: Some(child), .. })) = event.get() {
                named.met(*child, Mention { seq: event.seq(), call: None });
            } else if event.get::<TurnStart>().is_some() {
                open.clear();
            }
        }
        named
    }

    /// The answer to a call that started a child may come behind the child's end.
    fn met(&mut self, child: SessionId, Mention { seq, call }: Mention) {
        let first = self.0.entry(child).or_insert(Mention { seq, call });
        first.call = first.call.or(call.filter(|call| *call < first.seq));
    }

    pub(crate) fn mention(&self, child: SessionId) -> Option<Mention> {
        self.0.get(&child).copied()
    }

    /// Whether each of them has a log whose header names `parent`. Those that `shown` holds speak for themselves if they
    /// cannot be read.
    pub(crate) async fn check(
        &self,
        parent: SessionId,
        logs: &dyn Logs,
        tree: &Tree,
        shown: impl Fn(SessionId) -> bool,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (child, Mention { seq, .. }) in &self.0 {
            let found = match tree.parent_of(*child) {
                Some(Ok(found)) => Ok(found),
                Some(Err(_)) if shown(*child) => continue,
                Some(Err(_)) => Err(Code::ChildUnreadable),
                // It may have been made since the logs were listed.
                None => match logs.read(*child).await {
                    Ok(read) => Ok(read.decoded.log().header().lineage().map(|lineage| lineage.parent())),
                    Err(ReadError::NotFound(_)) => Err(Code::ChildMissing),
                    Err(ReadError::Damaged(_) | ReadError::Io(_)) => Err(Code::ChildUnreadable),
                },
            };
            let (code, why) = match found {
                Ok(Some(other)) if other == parent => continue,
                Ok(Some(other)) => {
                    (Code::ChildOfAnother, format!("the log of its child {child} names {other} as its parent"))
                }
                Ok(None) => (Code::ChildOfAnother, format!("the log of its child {child} names no parent")),
                Err(Code::ChildMissing) => (Code::ChildMissing, format!("there is no log of its child {child}")),
                Err(code) => (code, format!("the log of its child {child} cannot be read")),
            };
            findings.push(Finding::at(code, *seq, why));
        }
        findings
    }
}

/// The child that a result names, and the call that started it if it is this one.
fn in_result(result: &ToolReturned, call: Option<(u64, &ToolCalled)>) -> Option<(SessionId, Option<u64>)> {
    if let Some(meta) = &result.meta {
        let report = serde_json::from_str::<DelegationReport>(meta.get()).ok()?;
        return Some((report.child?, call.map(|(seq, _)| seq)));
    }
    let (seq, call) = call.filter(|_| !result.is_error)?;
    let child = result.content.iter().filter_map(|part| part.as_text()).find_map(session_in)?;
    let asked = serde_json::from_str::<Background>(&call.arguments).ok()?;
    asked.run_in_background.then_some((child, Some(seq)))
}

/// The session that the answer to a start in the background names.
fn session_in(text: &str) -> Option<SessionId> {
    let (_, behind) = text.split_once("(session ")?;
    behind.split_once(')')?.0.parse().ok()
}
