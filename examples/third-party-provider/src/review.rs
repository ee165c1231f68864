//! What the reviewers are asked, and what they answer.

use std::sync::{Arc, Weak};

use agent::AgentRef;
use futures_util::future::join_all;
use subagent::{Denials, Request, RunResult, StopReason, Subagents};

use crate::{Config, Reviewer};

/// The most that a reviewer is shown of an answer, and an author of a review, in bytes.
const LIMIT: usize = 32 * 1024;

/// What is needed to ask the reviewers.
pub(crate) struct Reviews {
    subagents: Weak<Subagents>,
    config: Arc<Config>,
    task: Arc<str>,
    max_depth: Option<u32>,
}

/// What came of asking one.
pub(crate) struct Review {
    pub(crate) label: Arc<str>,
    /// What it said, or why it said nothing.
    pub(crate) said: Result<String, String>,
    pub(crate) denied: Denials,
}

impl Reviews {
    pub(crate) fn new(subagents: &Weak<Subagents>, config: &Arc<Config>, request: &Request) -> Self {
        let (task, max_depth) = (request.prompt.clone(), request.max_depth);
        Self { subagents: subagents.clone(), config: config.clone(), task, max_depth }
    }

    /// Asks all of them at once. They are children of the author's, which was stamped when the panel was called: so what
    /// they inherit was taken then, whatever their grandparent does meanwhile.
    pub(crate) async fn of(&self, author: &AgentRef, draft: &str) -> Vec<Review> {
        join_all(self.config.reviewers.iter().map(|reviewer| self.ask(reviewer, author, draft))).await
    }

    async fn ask(&self, reviewer: &Reviewer, author: &AgentRef, draft: &str) -> Review {
        let label = reviewer.label.clone();
        match self.run(reviewer, author, draft).await {
            Ok(result) => Review { label, said: words(&result), denied: result.denials },
            Err(why) => Review { label, said: Err(why), denied: Denials::default() },
        }
    }

    async fn run(&self, reviewer: &Reviewer, author: &AgentRef, draft: &str) -> Result<RunResult, String> {
        let subagents = self.subagents.upgrade().ok_or("the app is closing")?;
        let request = Request {
            label: Some(reviewer.label.clone()),
            persona: Some(reviewer.persona.clone()),
            max_depth: self.max_depth,
            ..Request::new(format!("The task was:\n{}\n\nThe answer is:\n{}", cut(&self.task), cut(draft)))
        };
        let starting = subagents.start(author, &self.config.provider, request);
        let run = starting.await.map_err(|error| error.to_string())?;
        let result = run.result().await.clone();
        run.dispose().await.map_err(|error| error.to_string())?;
        Ok(result)
    }
}

fn words(result: &RunResult) -> Result<String, String> {
    match (result.reason, result.text()) {
        (StopReason::Completed, text) if text.is_empty() => Err("it said nothing".to_owned()),
        (StopReason::Completed, text) => Ok(text),
        (reason, _) => Err(result.message.as_deref().unwrap_or(reason.as_str()).to_owned()),
    }
}

/// What the author is asked once it was reviewed.
pub(crate) fn revision(reviews: &[(Arc<str>, String)]) -> String {
    let all: Vec<String> = reviews.iter().map(|(label, text)| format!("{label}: {}", cut(text))).collect();
    format!("Your answer was reviewed. Give your final answer, with what you accept of this:\n\n{}", all.join("\n\n"))
}

/// As much of a text as is passed on, whole characters only.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LIMIT)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_on_is_bounded_and_whole() {
        assert_eq!(cut("short"), "short");
        let long = "ü".repeat(LIMIT);
        assert_eq!(cut(&long).len(), LIMIT);
        let odd = format!("x{long}");
        assert_eq!(cut(&odd).len(), LIMIT - 1);
    }
}
