use std::sync::Arc;

use context::Ctx;
use sandbox::Denial;
use tokio_util::sync::CancellationToken;
use tools::{OUTPUT_LIMIT, limit_text};

use crate::job::Job;
use crate::{JobId, JobState};

/// What the work of a job is given.
pub struct Working {
    pub(crate) job: Arc<Job>,
    pub(crate) ctx: Ctx,
}

/// How the work of a job ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(crate) state: JobState,
    pub(crate) text: String,
    pub(crate) denial: Option<Denial>,
}

impl Working {
    /// The job's id.
    pub fn id(&self) -> JobId {
        self.job.id
    }

    /// The job's own scope, which looks up what its owner does. It closes when the work is over.
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Fires when the job is killed, or its owner ends. Work that goes on beyond its grace is dropped.
    pub fn cancelled(&self) -> &CancellationToken {
        self.ctx.cancelled()
    }

    /// Adds to the output, of which the head and the tail are kept.
    pub fn push(&self, text: &str) {
        self.job.push(text);
    }
}

impl Outcome {
    /// The work is done. The text is its last word; what is longer than a tool may answer with loses its middle.
    pub fn completed(text: impl Into<String>) -> Self {
        Self::new(JobState::Completed, text.into())
    }

    /// The work could not be done, and why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(JobState::Failed, text.into())
    }

    /// What the sandbox denied the work, which its text says too. The log tells of it as well, as [`Denied`].
    ///
    /// [`Denied`]: sandbox_policy::Denied
    #[must_use]
    pub fn denied(self, denial: Denial) -> Self {
        Self { denial: Some(denial), ..self }
    }

    fn new(state: JobState, text: String) -> Self {
        let text = if text.len() > OUTPUT_LIMIT { limit_text(&text, OUTPUT_LIMIT) } else { text };
        Self { state, text, denial: None }
    }
}
