//! Every word that the model reads about delegation.

use std::fmt::Write as _;

use subagent::{RunResult, StartError, StopReason};

pub(crate) fn description(inherits_parent_context: bool) -> &'static str {
    if inherits_parent_context {
        "Hands a task to a child agent that knows this conversation up to your last finished turn. It works on its own \
         in the same directory, with no more permissions than you have now, and returns its final message. Several \
         calls in one response run at the same time."
    } else {
        "Hands a task to a child agent. It starts with an empty conversation, so put everything it needs to know into \
         the prompt. It works on its own in the same directory, with no more permissions than you have now, and returns \
         its final message. Several calls in one response run at the same time."
    }
}

pub(crate) fn not_started(error: &StartError) -> String {
    format!("the child was not started: {error}")
}

pub(crate) fn result(result: &RunResult, disposal: Option<&str>) -> String {
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
    if !result.denials.is_empty() {
        let _ = write!(text, "\n\nDenied to the child, by the scope that you handed down:");
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
