//! A child as a process tree, from its start to the proof that nothing is left of it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use context::{BoxError, Stop};
use subprocess::{Ended, How, Input, Output, Pipes, Process};
use tokio::time::timeout;

use crate::hold::{Home, Ready};
use crate::{Graces, Refused};

/// How much of the end of what the child complains is kept, in bytes.
const COMPLAINTS: usize = 16 * 1024;

/// A running child. It is a tree with one owner, this: dropping it kills the tree, [`Child::end`] also waits.
#[derive(Debug)]
pub struct Child {
    process: Process,
    complaints: Complaints,
    home: Home,
}

/// What a provider talks to a child with.
#[derive(Debug)]
pub struct Talk {
    /// What the child reads. Dropping it is the end of that.
    pub input: Input,
    /// What it writes. A child whose output is not read waits.
    pub output: Output,
}

/// A child of which nothing is left, unless it is said.
#[derive(Debug)]
pub struct Ending {
    /// How it came about.
    pub how: How,
    /// What it took.
    pub step: Step,
    /// What the helper found.
    pub notes: Vec<String>,
    /// That something of it is left, or may be.
    pub proof: Result<(), BoxError>,
}

/// What it takes until a child has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It ended when there was nothing more for it to read, or before.
    Itself,
    /// It ended when it was told to.
    Terminated,
    /// It was killed, with everything that it had started.
    Killed,
}

/// What a child complains while it starts; afterwards it may be about anything, and is forgotten.
#[derive(Clone, Debug, Default)]
struct Complaints(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    closed: bool,
}

impl Child {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// Why it was not started. Nothing is left of it then.
    pub fn spawn(ready: Ready) -> Result<(Self, Talk), Refused> {
        let Ready { home, spawn } = ready;
        let mut process = Process::spawn(&home.0, spawn)?;
        let Pipes { input, output, errors } = process.pipes().expect("it was started with pipes");
        let complaints = Complaints::default();
        home.0.spawn("complaints", Stop::Join, complaints.clone().listen(errors)).map_err(|_| Refused::Closing)?;
        Ok((Self { process, complaints, home }, Talk { input, output }))
    }

    /// From now on what it complains is not kept: it has been told things that are nobody else's.
    pub fn confide(&self) {
        let mut kept = self.complaints.lock();
        kept.closed = true;
        kept.text = Vec::new();
    }

    /// The end of what it complained before it was [told](Self::confide) anything. As it is.
    pub fn complaints(&self) -> String {
        String::from_utf8_lossy(&self.complaints.lock().text).into_owned()
    }

    /// The helper's process id, of which everything of the child is a descendant.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Owns another task of the child's, which ends when the child does.
    ///
    /// # Errors
    ///
    /// The child is ending.
    pub fn own(&self, what: &'static str, task: impl Future<Output = ()> + Send + 'static) -> Result<(), Refused> {
        self.home.0.spawn(what, Stop::Join, task).map_err(|_| Refused::Closing)
    }

    /// Ends it, and returns when everything of its tree is gone: waits a while for it to end by itself, tells it to, kills it.
    /// Whoever holds its input has dropped it before.
    pub async fn end(mut self, graces: &Graces) -> Ending {
        let mut step = Step::Itself;
        let ended = match within(graces.close, &mut self.process).await {
            Some(ended) => ended,
            None => {
                step = Step::Terminated;
                self.process.terminate();
                match within(graces.terminate, &mut self.process).await {
                    Some(ended) => ended,
                    None => {
                        step = Step::Killed;
                        self.process.kill();
                        self.process.wait().await
                    }
                }
            }
        };
        let Ended { how, notes } = ended;
        let proof = self.home.0.close().await.map_err(BoxError::from);
        Ending { how, step, notes, proof }
    }
}

async fn within(grace: Duration, process: &mut Process) -> Option<Ended> {
    timeout(grace, process.wait()).await.ok()
}

impl Complaints {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn listen(self, mut errors: Output) {
        while let Some(piece) = errors.next().await {
            let mut kept = self.lock();
            if !kept.closed {
                kept.text.extend(piece);
                let over = kept.text.len().saturating_sub(COMPLAINTS);
                kept.text.drain(..over);
            }
        }
    }
}

/// How it ended, in a few words of our own.
impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.how, self.step) {
            (How::Exited(code), _) => write!(f, "it exited with code {code}"),
            (How::Signaled(signal), _) => write!(f, "it was ended by signal {signal}"),
            (How::Killed, _) => f.write_str("it did not end by itself and was killed"),
            (How::NotFound { program, why }, _) => write!(f, "{program} cannot be executed: {why}"),
            (How::SetUpFailed { stage, why }, _) => write!(f, "what holds it could not be set up: {stage}: {why}"),
            (How::HelperDied { status }, _) => write!(f, "what held it ended: {status}"),
        }
    }
}
