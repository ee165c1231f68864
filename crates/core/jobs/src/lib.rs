//! Work that an agent has going on in the background.
//!
//! *Owns:* jobs and their states, whose they are, how many there may be, what is kept of their output, the one notice
//! that tells an agent of a job that ended, and the wait for an agent whose jobs go on.
//! *Never:* what a job does, a tool by name, a job that outlives its owner or a restart.
//!
//! A job lives in its owner's scope. The owner alone sees it: to everybody else its id is unknown. One that ended by
//! itself is told to its owner in an inbox message, which wakes it; one that the owner killed, or that ended with the
//! owner, is not. Until the owner has heard of a job's end in a step, nothing of the job is forgotten; while it has not
//! heard of too many, it begins no more. A log gives an id once.
//!
//! ```
//! # use std::sync::Arc; use agent::*; use context::{Boxed, Plugins, Scope}; use jobs::*;
//! # struct Deaf;
//! # impl AgentDriver for Deaf {
//! #     fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
//! #         Box::pin(async move { driven.agent().ctx().cancelled().cancelled().await })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let app = Scope::root("app");
//! # app.provide::<dyn AgentDriver>(Arc::new(Deaf))?;
//! Plugins::new().with(session::SessionsPlugin, ()).with(JobsPlugin, Config::default()).start(&app).await?;
//! let jobs = app.get::<Jobs>().expect("the plugin provides it");
//! # let session = app.get::<session::Sessions>().unwrap().create("/home/me/project");
//! # let agent = Agents::new(&app).create(&app, Spec::new(session, Profile::of("offline/script".parse()?))).await?;
//! let id = jobs.start(&agent, NewJob::new("count", "to three"), |job| async move {
//!     job.push("one, two, ");
//!     Outcome::completed("three")
//! })?;
//! jobs.settled(&agent).await;
//! let read = jobs.output(&agent, id)?;
//! assert_eq!((read.info.state, &*read.text), (JobState::Completed, "one, two, \nthree"));
//! assert_eq!(agent.session().pending_len(), 1, "the owner is told");
//! # agent.dispose().await?; app.close().await?; Ok(()) }
//! ```

mod began;
mod carry;
mod finished;
mod job;
mod notice;
mod output;
mod own;
mod plugin;
mod service;
mod work;

pub use began::JobBegan;
pub use finished::last_turn;
pub use job::{JobId, JobInfo, JobOutput, JobState};
pub use notice::{NOTICE_LIMIT, NOTICE_TAG, NOTICES_LIMIT, Reader};
pub use output::{HEAD_LIMIT, TAIL_LIMIT};
pub use plugin::{Config, JobsPlugin};
pub use service::{JobEnded, JobStarted, Jobs, Lost, NewJob, Opening, StartError, UnknownJob};
pub use work::{Outcome, Working};
