use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox::Denial;
use serde::{Deserialize, Serialize};
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::output::Output;

/// The id of a job, counted from 1 for each log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub(crate) u64);

/// How it stands with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It works, or is winding up.
    Running,
    /// It did what it was to do.
    Completed,
    /// It could not do it, or panicked.
    Failed,
    /// Its owner killed it, or ended.
    Killed,
}

/// What a list shows of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// Its id.
    pub id: JobId,
    /// What kind of work it is.
    pub kind: Arc<str>,
    /// A few words for people and models, in one line.
    pub label: Arc<str>,
    /// How it stands.
    pub state: JobState,
    /// How long it has run, or did.
    pub time: Duration,
}

/// What a job has said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutput {
    /// How it stands with the job.
    pub info: JobInfo,
    /// The head and the tail of its output, and its last word once it has ended.
    pub text: String,
    /// What the sandbox denied it. Told once, to who first reads its end; the log tells of it in any case.
    pub denial: Option<Denial>,
}

/// A job, as its owner's list holds it.
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) kind: Arc<str>,
    pub(crate) label: Arc<str>,
    begun: Instant,
    /// Asks the job to end.
    pub(crate) kill: CancellationToken,
    /// Set last of all: its scope is closed, its end announced, and its owner told if there was room.
    pub(crate) settled: SetOnce<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    output: Output,
    killing: bool,
    /// Decided when the work ends, so that a kill which comes after that comes too late.
    decided: Option<JobState>,
    end: Option<End>,
}

/// How a job ended.
pub(crate) struct End {
    pub(crate) state: JobState,
    pub(crate) text: String,
    pub(crate) time: Duration,
    pub(crate) denial: Option<Denial>,
}

impl JobState {
    /// In one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }
}

impl std::fmt::Display for JobId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "job-{}", self.0)
    }
}

/// `job-1 (count: to three)`.
impl std::fmt::Display for JobInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}: {})", self.id, self.kind, self.label)
    }
}

impl Job {
    pub(crate) fn new(id: JobId, kind: Arc<str>, label: Arc<str>) -> Arc<Self> {
        let (begun, kill, settled, state) =
            (Instant::now(), CancellationToken::new(), SetOnce::new(), Mutex::default());
        Arc::new(Self { id, kind, label, begun, kill, settled, state })
    }

    pub(crate) fn push(&self, text: &str) {
        self.lock().output.push(text);
    }

    /// Asks it to end, unless its work has ended.
    pub(crate) fn start_killing(&self) {
        let mut state = self.lock();
        if state.decided.is_none() {
            state.killing = true;
            drop(state);
            self.kill.cancel();
        }
    }

    /// Decides once how it ended: as its work says, unless somebody killed it before that.
    pub(crate) fn decide(&self, ended: JobState) -> JobState {
        let mut state = self.lock();
        let killing = state.killing;
        *state.decided.get_or_insert(if killing { JobState::Killed } else { ended })
    }

    /// Its end can be seen from now on. The first one holds.
    pub(crate) fn end(&self, state: JobState, text: String, denial: Option<Denial>) {
        let time = self.begun.elapsed();
        self.lock().end.get_or_insert(End { state, text, time, denial });
    }

    /// What it was denied, unless somebody was told already.
    pub(crate) fn take_denial(&self) -> Option<Denial> {
        self.lock().end.as_mut()?.denial.take()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    pub(crate) fn info(&self) -> JobInfo {
        self.read(false).info
    }

    pub(crate) fn output(&self) -> JobOutput {
        self.read(true)
    }

    fn read(&self, with_text: bool) -> JobOutput {
        let state = self.lock();
        let (how, time) = match &state.end {
            Some(end) => (end.state, end.time),
            None => (JobState::Running, self.begun.elapsed()),
        };
        let mut text = String::new();
        if with_text {
            text = state.output.to_text();
            if let Some(end) = state.end.as_ref().filter(|end| !end.text.is_empty()) {
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(&end.text);
            }
        }
        drop(state);
        let (kind, label) = (self.kind.clone(), self.label.clone());
        JobOutput { info: JobInfo { id: self.id, kind, label, state: how, time }, text, denial: None }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
