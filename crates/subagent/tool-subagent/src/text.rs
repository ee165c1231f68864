//! Every word that the model reads about delegation.

use std::fmt::{Display, Write as _};

use jobs::JobId;
use session::SessionId;
use subagent::{RunResult, StopReason};

/// What came of a child, and what is told besides.
pub(crate) struct Answer {
    pub(crate) said: String,
    /// Begins with a blank line where there is anything.
    pub(crate) notes: String,
}

pub(crate) fn description(inherits_parent_context: bool, has_schema: bool) -> String {
    let knows = match inherits_parent_context {
        true => "Hands a task to a child agent that knows this conversation up to your last finished turn.",
        false => {
            "Hands a task to a child agent. It starts with an empty conversation, so put everything it needs to know \
             into the prompt."
        }
    };
    let returns = match has_schema {
        true => "returns a result of a fixed form, as JSON",
        false => "returns its final message",
    };
    format!(
        "{knows} It works on its own in the same directory, with no more permissions than you have now, and {returns}. \
         Several calls in one response run at the same time."
    )
}

pub(crate) fn not_started(error: &impl Display) -> String {
    format!("the child was not started: {error}")
}

pub(crate) fn started(job: JobId, child: Option<SessionId>) -> String {
    let child = child.map(|id| format!(" (session {id})")).unwrap_or_default();
    format!("{job}: the child{child} is at work. You are told when it is done.")
}

pub(crate) fn answer(result: &RunResult, disposal: Option<&str>) -> Answer {
    Answer { said: said(result), notes: notes(result, disposal) }
}

fn said(result: &RunResult) -> String {
    if let Some(structured) = &result.structured {
        return structured.to_string();
    }
    let said = result.text();
    let mut text = String::new();
    if let Some(how) = how_it_ended(result.reason) {
        text.push_str(how);
        if let Some(message) = &result.message {
            let _ = write!(text, ": {message}");
        }
    }
    match (said.is_empty(), text.is_empty()) {
        (false, true) => text = said,
        (false, false) => {
            let _ = write!(text, ". Its last message:\n{said}");
        }
        (true, true) => text.push_str("the child finished without a message"),
        (true, false) => {}
    }
    text
}

fn notes(result: &RunResult, disposal: Option<&str>) -> String {
    let mut text = String::new();
    if !result.denials.is_empty() {
        text.push_str("\n\nDenied to the child, by the scope that you handed down:");
        for denial in &result.denials.list {
            let denial = denial.denial();
            let target = sandbox::one_line(&denial.target);
            let _ = write!(text, "\n- {} {target} (mode {})", denial.operation, denial.mode);
        }
        let more = result.denials.total.saturating_sub(result.denials.list.len() as u64);
        if more > 0 {
            let _ = write!(text, "\n- and {more} more");
        }
    }
    if let Some(disposal) = disposal {
        let _ = write!(text, "\n\nThe child was not wound up cleanly: {disposal}");
    }
    text
}

fn how_it_ended(reason: StopReason) -> Option<&'static str> {
    match reason {
        StopReason::Completed => None,
        StopReason::Aborted => Some("the child was cancelled"),
        StopReason::MaxTokens => Some("the child's reply was cut by its token limit"),
        StopReason::Refusal => Some("the child's task was refused"),
        StopReason::Error => Some("the child failed"),
    }
}
