//! `tether policy audit`: whether every child was held to its parent's scope, from logs alone.

use std::io::Write;

use policy_audit::{AuditError, Audited, Finding, Report, Unknown};
use serde_json::json;

use super::style::{BAD, BOLD, DIM, GOOD, NOTABLE};
use super::text::{brief, count, indent};
use super::{Notes, Stop};

/// The longest label, in characters.
const LABEL: usize = 60;
/// The longest message, in characters.
const MESSAGE: usize = 600;
/// How far an audit goes.
const OUT_OF_SCOPE: &str = "logs are compared with each other: rewriting all of them consistently is out of scope";

pub(super) fn json(report: &Report, out: &mut dyn Write) -> Result<Notes, Stop> {
    for Audited { session, parent, findings, more, unknown, .. } in &report.sessions {
        let mut line = json!({ "session": session, "findings": findings });
        if let Some(parent) = parent {
            line["parent"] = json!(parent);
        }
        if *more > 0 {
            line["more"] = json!(more);
        }
        if !unknown.is_empty() {
            let told = |Unknown { tag, seq, events }: &Unknown| json!({ "type": tag, "seq": seq, "events": events });
            line["unknown"] = unknown.iter().map(told).collect();
        }
        writeln!(out, "{line}")?;
    }
    let (sessions, violations) = (report.sessions.len(), report.violations());
    writeln!(out, "{}", json!({ "type": "result", "sessions": sessions, "violations": violations }))?;
    Ok(super::told(&report.unplaced))
}

pub(super) fn text(report: &Report, out: &mut dyn Write) -> Result<Notes, Stop> {
    for audited in &report.sessions {
        tell(audited, out)?;
    }
    writeln!(out, "{DIM}{OUT_OF_SCOPE}{DIM:#}")?;
    let sessions = plural(report.sessions.len() as u64, "session", "sessions");
    let violations = match report.violations() {
        0 => format!("{GOOD}no violation{GOOD:#}"),
        some => format!("{BAD}{}{BAD:#}", plural(some, "violation", "violations")),
    };
    writeln!(out, "audited {sessions}: {violations}")?;
    Ok(super::told(&report.unplaced))
}

fn tell(audited: &Audited, out: &mut dyn Write) -> Result<(), Stop> {
    let Audited { session, depth, label, findings, more, unknown, .. } = audited;
    let margin = indent(*depth);
    write!(out, "{margin}{session}  ")?;
    if let Some(label) = label {
        write!(out, "{BOLD}{}{BOLD:#}  ", brief(label, LABEL))?;
    }
    match findings.len() as u64 + more {
        0 => write!(out, "{GOOD}ok{GOOD:#}")?,
        some => write!(out, "{BAD}{}{BAD:#}", plural(some, "violation", "violations"))?,
    }
    for Unknown { tag, seq, events } in unknown {
        let events = plural(*events, "event", "events");
        write!(out, "  {NOTABLE}{events} of the unknown type {}, from seq {seq} on{NOTABLE:#}", brief(tag, LABEL))?;
    }
    writeln!(out)?;
    for Finding { code, seq, message } in findings {
        let at = seq.map_or_else(String::new, |seq| format!("seq {seq} "));
        writeln!(out, "{margin}  {BAD}✗ {at}{code}: {}{BAD:#}", brief(message, MESSAGE))?;
    }
    if *more > 0 {
        writeln!(out, "{margin}  {BAD}✗ and {} more{BAD:#}", count(*more))?;
    }
    Ok(())
}

fn plural(n: u64, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{} {many}", count(n)),
    }
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::NotFound(none) => session_store::ReadError::NotFound(none).into(),
            AuditError::List(error) => error.into(),
        }
    }
}
