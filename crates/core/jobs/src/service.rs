use std::sync::Arc;

use agent::AgentRef;
use context::{Closing, Ctx, ProvideError, Realm, Stop};
use sandbox::one_line;
use session::{InboxClaimed, InboxDiscarded, SessionId};

use crate::carry::Carry;
use crate::job::Job;
use crate::own::{Own, Place};
use crate::{Config, JobBegan, JobId, JobInfo, JobOutput, Outcome, Working, notice};

/// The longest label and kind, in characters.
const LABEL_LIMIT: usize = 200;

/// Everybody's jobs, each to its owner alone.
pub struct Jobs {
    home: Realm,
    config: Config,
}

/// What a job is called.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// What kind of work it is: usually the tool that starts it.
    pub kind: Arc<str>,
    /// A few words for people and models.
    pub label: Arc<str>,
}

/// A place for a job whose work is still being prepared. Dropping it gives the place back.
#[must_use = "dropping it gives the place back"]
pub struct Opening {
    home: Realm,
    config: Config,
    owner: AgentRef,
    own: Arc<Own>,
    place: Place,
    job: NewJob,
}

/// A job has begun. Emitted in the app's realm, once for every job, first.
#[derive(Clone, Debug)]
pub struct JobStarted {
    /// Whose it is.
    pub owner: SessionId,
    /// The job.
    pub job: JobInfo,
}

/// A job has ended, and its owner was told if it was to be. Emitted in the app's realm, once for every job, last.
#[derive(Clone, Debug)]
pub struct JobEnded {
    /// Whose it was.
    pub owner: SessionId,
    /// The job.
    pub job: JobInfo,
}

/// Why there is no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Too many run.
    #[error("{0} jobs are running, and there may not be more: wait for one to end, or kill one")]
    TooMany(usize),
    /// Too many have ended that the owner has not heard of.
    #[error(
        "{0} jobs have ended that you have not heard of yet: you are told at your next step, and may then start more"
    )]
    TooManyUnheard(usize),
    /// Its owner ends.
    #[error("the agent is ending, and starts nothing any more")]
    OwnerClosing,
}

/// The owner has no such job: it never had it, it is somebody else's, or it ended too long ago.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("you have no job `{id}`{}; {}", .lost.map_or("", Lost::why), there_are(.known))]
pub struct UnknownJob {
    /// What was asked for.
    pub id: Box<str>,
    /// Where it is, if there ever was one.
    pub lost: Option<Lost>,
    /// What there is.
    pub known: Vec<JobId>,
}

/// What became of a job that an owner's log names and the owner has no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It ended, and too many others since.
    Forgotten,
    /// It was begun before the agent was.
    Earlier,
}

impl Lost {
    fn why(self) -> &'static str {
        match self {
            Self::Forgotten => " any more: it ended, and only the last are kept",
            Self::Earlier => {
                ": it may have ended with an earlier process, or be of the conversation that you were forked from"
            }
        }
    }
}

impl NewJob {
    /// A job of a kind, with a label.
    pub fn new(kind: impl Into<Arc<str>>, label: impl Into<Arc<str>>) -> Self {
        Self { kind: kind.into(), label: label.into() }
    }
}

impl Jobs {
    /// Jobs are announced in `home`'s realm.
    pub fn new(home: &Ctx, config: Config) -> Arc<Self> {
        Arc::new(Self { home: home.realm().clone(), config })
    }

    /// Takes a place for a job whose work is still to be prepared, so that nothing is prepared in vain.
    pub fn open(&self, owner: &AgentRef, job: NewJob) -> Result<Opening, StartError> {
        let own = own_or_new(owner, self.config)?;
        if own.is_behind() {
            return Err(StartError::TooManyUnheard(self.config.unheard));
        }
        let place = own.take_place().ok_or(StartError::TooMany(self.config.running))?;
        Ok(Opening { home: self.home.clone(), config: self.config, owner: owner.clone(), own, place, job })
    }

    /// Starts a job in a scope that the owner's scope owns. The work runs until it returns, is killed, or its owner ends.
    pub fn start<F>(
        &self,
        owner: &AgentRef,
        job: NewJob,
        work: impl FnOnce(Working) -> F + Send + 'static,
    ) -> Result<JobId, StartError>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        self.open(owner, job)?.start(work)
    }

    /// The owner's jobs: those that run, and the last ones that ended, in the order in which they began.
    pub fn list(&self, owner: &AgentRef) -> Vec<JobInfo> {
        own(owner).map_or_else(Vec::new, |own| own.all().iter().map(|job| job.info()).collect())
    }

    /// The job that an owner means by `id`, as people and models write it: `job-1`.
    pub fn id(&self, owner: &AgentRef, id: &str) -> Result<JobId, UnknownJob> {
        let own = own(owner);
        let number = id.strip_prefix("job-").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let parsed = number.and_then(|digits| digits.parse().ok()).map(JobId);
        let found = parsed.filter(|id| own.as_ref().is_some_and(|own| own.find(*id).is_some()));
        found.ok_or_else(|| unknown(owner, own.as_deref(), id, parsed))
    }

    /// How it stands with a job, and what it has said.
    pub fn output(&self, owner: &AgentRef, id: JobId) -> Result<JobOutput, UnknownJob> {
        let job = find(owner, id)?;
        // Before the look: what ends meanwhile counts as unread.
        let has_ended = job.has_ended();
        let mut output = job.output();
        if let (true, Some(own)) = (has_ended, own(owner)) {
            own.read(id);
            output.denial = job.take_denial();
        }
        Ok(output)
    }

    /// Cancels a job and returns when nothing of it is left; at once if it has ended. What is answered says how.
    pub async fn kill(&self, owner: &AgentRef, id: JobId) -> Result<JobInfo, UnknownJob> {
        let job = find(owner, id)?;
        job.start_killing();
        job.settled.wait().await;
        Ok(job.info())
    }

    /// Waits for a job's end, without bringing it about.
    pub async fn ended(&self, owner: &AgentRef, id: JobId) -> Result<JobInfo, UnknownJob> {
        let job = find(owner, id)?;
        job.settled.wait().await;
        Ok(job.info())
    }

    /// How many of the owner's jobs run or are about to.
    pub fn running(&self, owner: &AgentRef) -> usize {
        own(owner).map_or(0, |own| own.running())
    }

    /// Kills all of them, and returns when nothing of them is left.
    pub async fn kill_all(&self, owner: &AgentRef) {
        let all = own(owner).map_or_else(Vec::new, |own| own.all());
        all.iter().for_each(|job| job.start_killing());
        for job in &all {
            job.settled.wait().await;
        }
    }

    /// Waits until none of the owner's jobs runs, and the owner was told of all that it is to be told of, as far as its
    /// inbox had room. What it does about that it does afterwards.
    pub fn settled(&self, owner: &AgentRef) -> impl Future<Output = ()> + Send + use<> {
        let own = own(owner);
        async move {
            if let Some(own) = own {
                own.settled().await;
            }
        }
    }
}

impl Opening {
    /// Starts the work.
    pub fn start<F>(self, work: impl FnOnce(Working) -> F + Send + 'static) -> Result<JobId, StartError>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let Self { home, config, owner, own, place, job: NewJob { kind, label } } = self;
        let (kind, label) = (short(&kind), short(&label));
        let mut added = None;
        // Numbered while nobody else writes: the last in the log is the highest.
        let began = |_| {
            let job = own.add(kind.clone(), label.clone());
            let began = JobBegan { job: job.id, kind, label };
            added = Some(job);
            began
        };
        owner.session().append_with(began).map_err(|_| StartError::OwnerClosing)?;
        let job = added.expect("an append that succeeds has made its payload");
        let id = job.id;
        let ctx = owner.ctx().clone();
        let carry = Carry::new(home, owner, own.clone(), job, place, config.grace);
        ctx.spawn("job", Stop::Join, carry.through(work)).map_err(|Closing| {
            own.remove(id);
            StartError::OwnerClosing
        })?;
        Ok(id)
    }
}

pub(crate) fn own(owner: &AgentRef) -> Option<Arc<Own>> {
    owner.ctx().get::<Own>()
}

fn own_or_new(owner: &AgentRef, config: Config) -> Result<Arc<Own>, StartError> {
    loop {
        if let Some(own) = own(owner) {
            return Ok(own);
        }
        let (from, before) = (owner.session().len(), last_in(owner));
        let own = Own::new(config, before);
        match owner.ctx().provide(own.clone()) {
            Ok(()) => {
                let told = owner.clone();
                let watching = owner.session().observe(from, move |event| {
                    own.note(event);
                    if event.get::<InboxClaimed>().is_some() || event.get::<InboxDiscarded>().is_some() {
                        notice::tell_waiting(&told, &own);
                    }
                });
                owner.ctx().own(watching).map_err(|Closing| StartError::OwnerClosing)?;
            }
            // Somebody else's first job came first.
            Err(ProvideError::AlreadyProvided(_)) => {}
            Err(ProvideError::Closing(_)) => return Err(StartError::OwnerClosing),
        }
    }
}

/// The last job that the owner's log names.
fn last_in(owner: &AgentRef) -> JobId {
    owner.session().latest::<JobBegan>().map_or_else(JobId::default, |began| began.job)
}

fn find(owner: &AgentRef, id: JobId) -> Result<Arc<Job>, UnknownJob> {
    let own = own(owner);
    let found = own.as_ref().and_then(|own| own.find(id));
    found.ok_or_else(|| unknown(owner, own.as_deref(), &id.to_string(), Some(id)))
}

fn unknown(owner: &AgentRef, own: Option<&Own>, id: &str, parsed: Option<JobId>) -> UnknownJob {
    let (before, last) = match own {
        Some(own) => (own.before, own.last()),
        None => (last_in(owner), last_in(owner)),
    };
    let lost = parsed.filter(|id| (JobId(1)..=last).contains(id));
    let lost = lost.map(|id| if id <= before { Lost::Earlier } else { Lost::Forgotten });
    let known = own.map_or_else(Vec::new, |own| own.all().iter().map(|job| job.id).collect());
    UnknownJob { id: id.chars().take(64).collect(), lost, known }
}

fn short(text: &str) -> Arc<str> {
    let short: String = text.chars().take(LABEL_LIMIT).collect();
    one_line(&short).to_string().into()
}

fn there_are(ids: &[JobId]) -> String {
    match ids {
        [] => "you have none".into(),
        ids => format!("there are: {}", ids.iter().map(JobId::to_string).collect::<Vec<_>>().join(", ")),
    }
}
