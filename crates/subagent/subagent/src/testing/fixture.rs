use std::time::Duration;

use async_trait::async_trait;
use context::{BoxError, Scope};

use super::model;
use crate::{Limits, Request};

/// A provider, in an app in which it works. Made anew for each check.
#[async_trait]
pub trait Fixture: Send + Sync + 'static {
    /// The name that the provider has there.
    fn name(&self) -> &str;

    /// Starts everything in `app` that an agent needs to delegate to the provider: sessions, agents, their loop,
    /// delegation under these limits, and the provider itself. The app has a store already, and a model provider named
    /// `contract`.
    async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError>;

    /// Where the provider's children run.
    fn children(&self) -> Children {
        Children::Here
    }

    /// A request whose child does this; `None` if no child of this provider could. Every provider has children that can
    /// [say](Task::Say) something and [hang](Task::Hang). Children with the model that their request names are told what
    /// to do by the suite's own model, and need nothing else.
    fn request(&self, task: Task) -> Option<Request> {
        Some(task.request())
    }

    /// What there is of the provider's children outside of the app, such as threads, processes and files, a few words
    /// each.
    fn outside(&self) -> Vec<String> {
        Vec::new()
    }

    /// How long anything may take that must come to an end. Shorter than the thirty seconds that a closing scope waits
    /// for a task that does not end.
    fn patience(&self) -> Duration {
        Duration::from_secs(20)
    }
}

/// Where a provider's children run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Children {
    /// Each is an agent in this process, with a session of its own.
    Here,
    /// They have no session in this process.
    Elsewhere,
}

/// What a child is to do. There may be more of them later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// Say this, and be done.
    Say(&'static str),
    /// Be done without a word.
    Silence,
    /// Work until it is stopped.
    Hang,
    /// Fail, as when a model cannot be reached.
    Fail,
    /// Panic.
    Panic,
    /// Hand in `{"n": 7}`, where a schema is given.
    HandIn,
    /// Call the tool of this name without arguments, then be done. Only asked of children that run here.
    Call(&'static str),
}

impl Task {
    /// The request for a child that runs here with the model that its request names.
    pub fn request(self) -> Request {
        Request { model: Some(model::route(self)), ..Request::new("do as the contract says") }
    }
}
