//! A job's own task: work, wind up, tell.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agent::{AgentRef, LogHold};
use context::{Ctx, Realm, Scope};
use futures_util::FutureExt as _;
use sandbox_policy::Denied;
use tokio::time::timeout;

use crate::job::Job;
use crate::own::{Own, Place};
use crate::{JobEnded, JobStarted, JobState, Outcome, Working, notice};

/// Everything that the task begins with. However it ends, the job has ended by then.
///
/// The owner's scope owns the task, and the task makes the job's scope: what is newer closes first, so the task is joined
/// after it.
pub(crate) struct Carry {
    home: Realm,
    owner: AgentRef,
    /// What comes of the job stands there, also when it ends with its owner.
    _log: LogHold,
    own: Arc<Own>,
    job: Arc<Job>,
    place: Option<Place>,
    grace: Duration,
    told: Told,
}

/// Whether the job was announced.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Nothing,
    Started,
}

impl Carry {
    pub(crate) fn new(
        home: Realm,
        owner: AgentRef,
        own: Arc<Own>,
        job: Arc<Job>,
        place: Place,
        grace: Duration,
    ) -> Self {
        let _log = owner.hold_log();
        Self { home, owner, _log, own, job, place: Some(place), grace, told: Told::Nothing }
    }

    pub(crate) async fn through<W, F>(mut self, work: W)
    where
        W: FnOnce(Working) -> F + Send + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.told = Told::Started;
        self.home.emit(&JobStarted { owner: self.owner.id(), job: self.job.info() });
        let Ok(scope) = self.owner.ctx().child("job") else { return };
        let mut outcome = self.work(&scope, work).await;
        let ended = if self.owner.ctx().is_closing() { JobState::Killed } else { outcome.state };
        let state = self.job.decide(ended);
        if let Err(error) = scope.close().await {
            outcome.text.push_str(&format!("\n\nThe job was not wound up cleanly: {error}"));
        }
        if let Some(denial) = &outcome.denial {
            // Whether or not anybody asks what came of it, and also where the owner has ended: its log is let go of after this.
            let _ = self.owner.session().append_last_words(Denied(denial.clone()));
        }
        self.job.end(state, outcome.text, outcome.denial);
        match state {
            JobState::Completed | JobState::Failed => self.tell().await,
            JobState::Killed | JobState::Running => {
                self.own.knows(self.job.id);
                self.own.prune();
            }
        }
    }

    /// Waits for the disk, and never for the owner: it may be waiting for this job.
    async fn tell(&self) {
        notice::tell(&self.owner, &self.own, self.job.id);
        if let Err(error) = self.owner.session().flush().await {
            tracing::warn!(session = %self.owner.id(), %error, "the notice of a job is not durable yet");
        }
    }

    /// Runs the work to its end; once it is to stop, for the grace at most.
    async fn work<W, F>(&self, scope: &Scope, work: W) -> Outcome
    where
        W: FnOnce(Working) -> F + Send + 'static,
        F: Future<Output = Outcome> + Send + 'static,
    {
        let working = Working { job: self.job.clone(), ctx: Ctx::clone(scope) };
        // The call is inside, since it may panic as well as its future.
        let mut working = std::pin::pin!(AssertUnwindSafe(async { work(working).await }).catch_unwind());
        let panicked = |_| Outcome::failed(format!("it panicked: this is a bug in `{}`", self.job.kind));
        tokio::select! {
            biased;
            outcome = &mut working => return outcome.unwrap_or_else(panicked),
            () = self.job.kill.cancelled() => scope.start_closing(),
            () = scope.cancelled().cancelled() => {}
        }
        match timeout(self.grace, working).await {
            Ok(outcome) => outcome.unwrap_or_else(panicked),
            Err(_) => Outcome::failed(format!("it did not end within {} s of being killed", self.grace.as_secs())),
        }
    }
}

impl Drop for Carry {
    fn drop(&mut self) {
        // Holds only where the task was given up before its end.
        self.job.end(JobState::Killed, String::new(), None);
        if self.told == Told::Started {
            self.home.emit(&JobEnded { owner: self.owner.id(), job: self.job.info() });
        }
        // The last: whoever waits for it finds everything told.
        drop(self.place.take());
        // Nobody else sets it.
        let _ = self.job.settled.set(());
    }
}
