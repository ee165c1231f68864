//! `tether policy explain`: what a session may do, and which events decided that, from logs alone.

use std::io::{self, Write};

use policy_audit::{Branch, ExplainError, Explained, Link, Ruling};
use serde_json::{Value, json};
use session::SessionId;

use super::style::{BAD, BOLD, DIM};
use super::text::{brief, indent};
use super::{Logs, Notes, Stop, diagnosis};

/// The longest remark or problem, in characters.
const REMARK: usize = 600;

pub(super) fn json(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let explained = logs.wait(policy_audit::explain(logs, id))?;
    writeln!(out, "{}", to_json(&explained))?;
    Ok(Notes::new())
}

pub(super) fn text(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let explained = logs.wait(policy_audit::explain(logs, id))?;
    tell(out, "", None, &explained)?;
    Ok(Notes::new())
}

pub(super) fn tree_json(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let mut branches = logs.wait(policy_audit::explain_tree(logs, id))?;
    while let Some(Branch { session, parent, depth, found }) = logs.wait(branches.next()) {
        let mut line = match found {
            Ok(explained) => to_json(&explained),
            Err(error) => json!({ "session": session, "error": diagnosis(&error) }),
        };
        line["depth"] = depth.into();
        if let Some(parent) = parent {
            line["parent"] = json!(parent);
        }
        writeln!(out, "{line}")?;
    }
    Ok(super::told(branches.unplaced()))
}

pub(super) fn tree_text(logs: &Logs, id: SessionId, out: &mut dyn Write) -> Result<Notes, Stop> {
    let mut branches = logs.wait(policy_audit::explain_tree(logs, id))?;
    while let Some(Branch { session, parent, depth, found }) = logs.wait(branches.next()) {
        let margin = indent(depth);
        if depth > 0 {
            writeln!(out)?;
        }
        match found {
            Ok(explained) => tell(out, &margin, parent, &explained)?,
            Err(error) => writeln!(out, "{margin}session   {session}\n{margin}  {BAD}✗ {}{BAD:#}", diagnosis(&error))?,
        }
    }
    Ok(super::told(branches.unplaced()))
}

fn to_json(explained: &Explained) -> Value {
    let Explained { session, sandbox, approval } = explained;
    json!({ "session": session, sandbox.name: ruling(sandbox), approval.name: ruling(approval) })
}

fn ruling(ruling: &Ruling) -> Value {
    let link = |Link { session, seq, source, value, is_seeded }: &Link| {
        let mut link = json!({ "session": session, "seq": seq, "source": source, ruling.key: value });
        if *is_seeded {
            link["seeded"] = true.into();
        }
        link
    };
    let decided_by = match ruling.links.is_empty() {
        true => json!("deployment default"),
        false => ruling.links.iter().map(link).collect(),
    };
    let value = ruling.links.first().map(|decider| &*decider.value);
    let mut told = json!({ ruling.key: value, "decidedBy": decided_by });
    if ruling.is_cut {
        told["cut"] = true.into();
    }
    if !ruling.problems.is_empty() {
        told["problems"] = json!(ruling.problems);
    }
    told
}

fn tell(out: &mut dyn Write, margin: &str, parent: Option<SessionId>, explained: &Explained) -> io::Result<()> {
    writeln!(out, "{margin}session   {}", explained.session)?;
    if let Some(parent) = parent {
        writeln!(out, "{margin}parent    {parent}")?;
    }
    for ruling in [&explained.sandbox, &explained.approval] {
        tell_ruling(out, margin, ruling)?;
    }
    Ok(())
}

fn tell_ruling(out: &mut dyn Write, margin: &str, ruling: &Ruling) -> io::Result<()> {
    let value = ruling.links.first().map_or("deployment default", |decider| &decider.value);
    writeln!(out, "{margin}{:<8}  {BOLD}{value}{BOLD:#}", ruling.name)?;
    if ruling.links.is_empty() {
        writeln!(out, "{margin}  no event decides")?;
    }
    for (index, Link { session, seq, source, is_seeded, .. }) in ruling.links.iter().enumerate() {
        let how = if index == 0 { "decided by" } else { "copied from" };
        let seeded = if *is_seeded { ", in history that was copied" } else { "" };
        writeln!(out, "{margin}  {how} {session} seq {seq} ({source}{seeded})")?;
    }
    if ruling.is_cut {
        writeln!(out, "{margin}  {DIM}and so on: the sessions above tell the rest{DIM:#}")?;
    }
    for remark in &ruling.remarks {
        writeln!(out, "{margin}  {DIM}{}{DIM:#}", brief(remark, REMARK))?;
    }
    for problem in &ruling.problems {
        writeln!(out, "{margin}  {BAD}✗ {}{BAD:#}", brief(problem, REMARK))?;
    }
    Ok(())
}

impl From<ExplainError> for Stop {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::NotFound(none) => session_store::ReadError::NotFound(none).into(),
            ExplainError::List(error) => error.into(),
        }
    }
}
