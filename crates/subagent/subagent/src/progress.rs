use std::sync::Arc;

use session::SessionId;

use crate::{ChildDenial, RunId};

/// What a child does that has no session in this process, and so no log to follow. Emitted in the app's realm between its
/// [start](crate::ChildStarted) and its [end](crate::ChildEnded); never logged.
#[derive(Clone, Debug)]
pub struct ChildProgress {
    /// Whose it is.
    pub run: RunId,
    /// Who runs it.
    pub provider: Arc<str>,
    /// Who delegated.
    pub parent: SessionId,
    /// What it does.
    pub doing: Doing,
}

/// What such a child does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// How it is held, in one line: said first.
    Held(Arc<str>),
    /// It says this, a piece of its message.
    Says(Arc<str>),
    /// It works with a tool of its own.
    Calls {
        /// Its own name for the call, the same as long as the call goes on.
        call: Arc<str>,
        /// The call in one line.
        title: Arc<str>,
        /// How far it is.
        state: CallState,
    },
    /// It was denied something.
    Denied(ChildDenial),
}

/// How far a call of such a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It has not begun.
    Pending,
    /// It goes on.
    Running,
    /// It is done.
    Done,
    /// It failed.
    Failed,
}
