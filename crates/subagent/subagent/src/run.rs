use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use context::{CloseError, Scope};
use llm::{Content, Usage};
use serde::{Deserialize, Serialize};
use session::{SessionId, TurnReason};
use tokio::sync::{SetOnce, oneshot};

use crate::{Denials, StartError};

/// A run's id, minted by the harness. A remote id never becomes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub(crate) u64);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// Its task is done.
    Completed,
    /// It was cancelled before it was done.
    Aborted,
    /// The token limit cut its last reply.
    MaxTokens,
    /// Its prompt was rejected, or its model declined.
    Refusal,
    /// Its model, its transport or its tools failed it.
    Error,
}

/// What came of a child.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// How it ended.
    pub reason: StopReason,
    /// The content of its last message that says something; empty if there was none.
    pub output: Vec<Content>,
    /// What it handed in, where a schema was given.
    pub structured: Option<serde_json::Value>,
    /// What went wrong, in one line, where something did.
    pub message: Option<Arc<str>>,
    /// Tokens that it cost, its own children not counted.
    pub usage: Usage,
    /// What its scope did not allow it, and its descendants.
    pub denials: Denials,
}

/// A running child. Not `Clone`: its holder disposes it, and dropping it begins to.
#[must_use = "dropping a run cancels its child"]
#[derive(Debug)]
pub struct Run {
    pub(crate) id: RunId,
    pub(crate) child: Option<SessionId>,
    pub(crate) scope: OwnedScope,
    pub(crate) result: Arc<SetOnce<RunResult>>,
}

/// The run's scope, shared with the task that watches the run. The holder's end begins its closing.
pub(crate) struct OwnedScope(pub(crate) Arc<Scope>);

/// A child can be seen from now on. Emitted in the app's realm, once for every run, first.
#[derive(Clone, Debug)]
pub struct ChildStarted {
    /// Pairs it with its end.
    pub run: RunId,
    /// Who runs it.
    pub provider: Arc<str>,
    /// A few words for people.
    pub label: Option<Arc<str>>,
    /// The parent's tool call that asked.
    pub call: Option<Arc<str>>,
    /// Who delegated.
    pub parent: SessionId,
    /// Its session, if it has one in this process.
    pub child: Option<SessionId>,
}

/// A child is done. Emitted in the app's realm, once for every run, last.
#[derive(Clone, Debug)]
pub struct ChildEnded {
    /// Pairs it with its start.
    pub run: RunId,
    /// Who ran it.
    pub provider: Arc<str>,
    /// Who delegated.
    pub parent: SessionId,
    /// Its session, if it has one in this process.
    pub child: Option<SessionId>,
    /// What came of it.
    pub result: RunResult,
}

/// A start under way. The capture is done; dropping this cancels the start, or the child if there is one already.
#[must_use = "dropping a start cancels it"]
pub struct Starting(pub(crate) Result<oneshot::Receiver<Result<Run, StartError>>, Option<StartError>>);

impl StopReason {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Aborted => "aborted",
            Self::MaxTokens => "max-tokens",
            Self::Refusal => "refusal",
            Self::Error => "error",
        }
    }
}

impl From<&TurnReason> for StopReason {
    fn from(reason: &TurnReason) -> Self {
        match reason {
            TurnReason::Completed => Self::Completed,
            TurnReason::MaxTokens => Self::MaxTokens,
            TurnReason::Aborted { .. } | TurnReason::Interrupted => Self::Aborted,
            TurnReason::Blocked { .. } => Self::Refusal,
            TurnReason::Error { .. } => Self::Error,
        }
    }
}

impl RunResult {
    /// A child that did what it was asked.
    pub fn completed(output: Vec<Content>) -> Self {
        Self { output, ..Self::ended(StopReason::Completed) }
    }

    /// A child that ended without a word.
    pub fn ended(reason: StopReason) -> Self {
        let (usage, denials) = (Usage::default(), Denials::default());
        Self { reason, output: Vec::new(), structured: None, message: None, usage, denials }
    }

    /// Its text parts together.
    pub fn text(&self) -> String {
        self.output.iter().filter_map(Content::as_text).collect()
    }
}

impl Run {
    /// Its id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Its session, if it has one in this process.
    pub fn child(&self) -> Option<SessionId> {
        self.child
    }

    /// Waits for the child's end. It stays published until the run is disposed.
    pub async fn result(&self) -> &RunResult {
        self.result.wait().await
    }

    /// Cancels, and returns when the child is quiet and gone and its end announced. Idempotent.
    pub async fn dispose(&self) -> Result<(), CloseError> {
        let closed = self.scope.0.close().await;
        if !matches!(closed, Err(CloseError::FromWithin(_))) {
            self.result().await;
        }
        closed
    }
}

impl Drop for OwnedScope {
    fn drop(&mut self) {
        self.0.start_closing();
    }
}

impl std::fmt::Debug for OwnedScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("scope")
    }
}

impl Future for Starting {
    type Output = Result<Run, StartError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(receiver) => Pin::new(receiver).poll(cx).map(|got| got.unwrap_or(Err(StartError::Cancelled))),
            Err(refused) => Poll::Ready(Err(refused.take().expect("polled after it was ready"))),
        }
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run-{}", self.0)
    }
}
