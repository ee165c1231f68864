//! The life of a child, from its process's start to the end of it.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::StopReason as Ends;
use context::{BoxError, Ctx};
use futures_util::FutureExt as _;
use session::SessionId;
use subagent::{ChildProgress, Doing, RunId, RunResult, StartError, StopReason};
use subagent_subprocess::{Child, Diagnostics, Ending, Evidence, Graces, Prepared, Talk};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::activity::{Activity, Told};
use crate::client::{Conversation, Done, converse};
use crate::wire::pump;
use crate::{Config, Failure};

/// How much may wait to be told on.
const TOLD: usize = 256;

/// How long what a child wrote before its output made no sense may take to be heard.
const HEARD: Duration = Duration::from_secs(2);

/// A child that is about to live.
pub(crate) struct Live {
    pub(crate) ctx: Ctx,
    pub(crate) config: Arc<Config>,
    pub(crate) run: RunId,
    pub(crate) provider: Arc<str>,
    pub(crate) parent: SessionId,
    /// The id that denials are told under. There is no such session.
    pub(crate) child: SessionId,
    pub(crate) prompt: Arc<str>,
    pub(crate) prepared: Prepared,
}

/// How a child and whoever started it hear of each other.
pub(crate) struct Line {
    /// Told once: its session is open, or why there is none.
    pub(crate) ready: oneshot::Sender<Result<(), StartError>>,
    /// Says that it was announced.
    pub(crate) go: oneshot::Receiver<()>,
    /// Told once, if its session was open.
    pub(crate) result: oneshot::Sender<RunResult>,
}

impl Live {
    /// Lives. Nothing of the child is left when this returns; an error says that something may be.
    pub(crate) async fn live(self, line: Line) -> Result<(), BoxError> {
        let Self { ctx, config, run, provider, parent, child, prompt, prepared } = self;
        let Line { ready, go, result } = line;
        let Prepared { spawn, held, mode, cwd, evidence, diagnostics } = prepared;
        let graces = config.settings.graces;
        let (process, talk) = match Child::spawn(spawn) {
            Ok(spawned) => spawned,
            Err(refused) => {
                let _dropped = ready.send(Err(refused.of(&provider)));
                return Ok(());
            }
        };
        let (tell, told) = mpsc::channel(TOLD);
        let activity = Activity::new(tell, config.permission, child, mode, evidence.is_some());
        let mut teller = Teller { ctx: ctx.clone(), run, provider, parent, evidence, activity: activity.clone(), told };
        teller.emit(Doing::Held(held.to_string().into()));
        let (opened, is_open) = oneshot::channel();
        let stop = ctx.cancelled().child_token();
        let conversation =
            Conversation { config, cwd, prompt, activity: activity.clone(), stop: stop.clone(), opened, go };
        let mut start = Starting { ready: Some(ready), is_open: Some(is_open), stop };
        let done = talk_to(&process, talk, conversation, &mut start, &mut teller).await;
        teller.rest().await;
        let end = Winding { process, diagnostics, provider: teller.provider.clone() };
        let Some(ready) = start.ready else {
            return end.settle(done, &activity, result, &graces).await;
        };
        // No session was opened.
        let failure = done.err().unwrap_or(Failure::Stopped);
        let complaints = end.process.complaints();
        let ending = end.process.end(&graces).await;
        let error = match failure {
            // Only a parent that ends closes the scope of a start, but for whoever gave it up and has no use for this.
            Failure::Stopped => StartError::ParentClosing,
            failure => {
                let text = describe(&end.diagnostics, &failure, &ending, &complaints);
                StartError::Provider { provider: end.provider, source: text.into() }
            }
        };
        let _dropped = ready.send(Err(error));
        ending.proof
    }
}

/// Whether anybody waits for the session to be open.
struct Starting {
    ready: Option<oneshot::Sender<Result<(), StartError>>>,
    is_open: Option<oneshot::Receiver<()>>,
    stop: CancellationToken,
}

/// Talks to the child until it is known how that ended. Its input is closed when this returns.
async fn talk_to(
    process: &Child,
    talk: Talk,
    conversation: Conversation,
    start: &mut Starting,
    teller: &mut Teller,
) -> Done {
    let Talk { input, output } = talk;
    let (to, frames) = mpsc::channel(1);
    let (broken, is_broken) = oneshot::channel();
    process.own("output", pump(output, to, broken)).map_err(|_| Failure::Stopped)?;
    let (done, is_done) = oneshot::channel();
    let (mut is_broken, mut is_done, mut waits) = (Some(is_broken), Some(is_done), None);
    let mut failure = None;
    let connection = AssertUnwindSafe(converse(frames, input, conversation, done)).catch_unwind();
    let mut connection = std::pin::pin!(connection);
    loop {
        tokio::select! {
            biased;
            done = word(&mut is_done) => return because(done, failure, is_broken),
            // The channel ends with the output; that is no failure. What came before it is heard first.
            broken = word(&mut is_broken) => {
                failure = Some(broken);
                waits = Some(Box::pin(tokio::time::sleep(HEARD)));
            }
            () = ended(&mut waits) => return because(Err(Failure::Connection), failure, is_broken),
            () = word(&mut start.is_open) => {
                // From here on it is told things that are nobody else's.
                process.confide();
                let told = start.ready.take().map(|ready| ready.send(Ok(())));
                if !matches!(told, Some(Ok(()))) {
                    start.stop.cancel();
                }
            }
            () = dropped(&mut start.ready), if !start.stop.is_cancelled() => start.stop.cancel(),
            Some(told) = teller.told.recv() => teller.tell(told).await,
            // It does not end before it is done, unless it fails.
            _ = &mut connection => {
                let done = is_done.and_then(|mut is_done| is_done.try_recv().ok());
                return because(done.unwrap_or(Err(Failure::Connection)), failure, is_broken);
            }
        }
    }
}

/// How a conversation ended: a child whose output makes no sense did not simply end.
fn because(done: Done, failure: Option<Failure>, is_broken: Option<oneshot::Receiver<Failure>>) -> Done {
    let failure = failure.or_else(|| is_broken?.try_recv().ok());
    done.map_err(|ended| failure.unwrap_or(ended))
}

/// The end of a wait, if there is one.
async fn ended(waits: &mut Option<Pin<Box<tokio::time::Sleep>>>) {
    match waits {
        Some(waits) => waits.await,
        None => std::future::pending().await,
    }
}

/// What is told once, if it is.
async fn word<T>(from: &mut Option<oneshot::Receiver<T>>) -> T {
    if let Some(receiver) = from {
        let told = receiver.await;
        *from = None;
        if let Ok(told) = told {
            return told;
        }
    }
    std::future::pending().await
}

/// Nobody waits for the start any more.
async fn dropped(ready: &mut Option<oneshot::Sender<Result<(), StartError>>>) {
    match ready {
        Some(ready) => ready.closed().await,
        None => std::future::pending().await,
    }
}

/// Tells on what a child does.
struct Teller {
    ctx: Ctx,
    run: RunId,
    provider: Arc<str>,
    parent: SessionId,
    evidence: Option<Evidence>,
    activity: Activity,
    told: mpsc::Receiver<Told>,
}

impl Teller {
    fn emit(&self, doing: Doing) {
        let Self { run, parent, .. } = *self;
        self.ctx.realm().emit(&ChildProgress { run, provider: self.provider.clone(), parent, doing });
    }

    async fn tell(&self, told: Told) {
        match (told, self.evidence.clone()) {
            (Told::Doing(doing), _) => self.emit(doing),
            (Told::Look(said), Some(evidence)) => {
                // It looks at the disk.
                let look = self.ctx.spawn_blocking("evidence", move || evidence.denial(&said));
                let Ok(look) = look else { return };
                if let Ok(Some(denial)) = look.await {
                    self.activity.deny(denial);
                }
            }
            (Told::Failed(paths), Some(evidence)) => {
                let look = move || paths.iter().filter_map(|path| evidence.denied_write(path)).collect::<Vec<_>>();
                let Ok(look) = self.ctx.spawn_blocking("evidence", look) else { return };
                look.await.into_iter().flatten().for_each(|denial| self.activity.deny(denial));
            }
            (Told::Look(_) | Told::Failed(_), None) => {}
        }
    }

    /// What was told before the end.
    async fn rest(&mut self) {
        while let Ok(told) = self.told.try_recv() {
            self.tell(told).await;
        }
    }
}

/// A child whose session was open and that is not talked to any more.
struct Winding {
    process: Child,
    diagnostics: Diagnostics,
    provider: Arc<str>,
}

impl Winding {
    /// Says what came of it, as soon as that is known, and ends it.
    async fn settle(
        self,
        done: Done,
        activity: &Activity,
        result: oneshot::Sender<RunResult>,
        graces: &Graces,
    ) -> Result<(), BoxError> {
        let (output, denials) = activity.outcome();
        let result_of = |reason, message: Option<String>| RunResult {
            output,
            denials,
            message: message.map(Into::into),
            ..RunResult::ended(reason)
        };
        let failure = match done {
            Ok(Ends::EndTurn) => Ok(StopReason::Completed),
            Ok(Ends::MaxTokens) => Ok(StopReason::MaxTokens),
            Ok(Ends::Refusal) => Ok(StopReason::Refusal),
            Ok(Ends::Cancelled) | Err(Failure::Stopped) => Ok(StopReason::Aborted),
            Ok(Ends::MaxTurnRequests) => Err(Failure::TurnRequests),
            Ok(_) => Err(Failure::UnknownEnd),
            Err(failure) => Err(failure),
        };
        match failure {
            Ok(reason) => {
                let _gone = result.send(result_of(reason, None));
                self.process.end(graces).await.proof
            }
            Err(failure) => {
                let ending = self.process.end(graces).await;
                let text = describe(&self.diagnostics, &failure, &ending, "");
                let _gone = result.send(result_of(StopReason::Error, Some(text)));
                ending.proof
            }
        }
    }
}

/// What is told of a child that failed: what it did not do, how it ended where that explains it, what it complained.
fn describe(diagnostics: &Diagnostics, failure: &Failure, ending: &Ending, complaints: &str) -> String {
    let how = match failure {
        Failure::Closed { .. } | Failure::Connection => format!("; {ending}"),
        _ => String::new(),
    };
    let (text, complaints) = (diagnostics.clean(&format!("{failure}{how}")), diagnostics.clean(complaints));
    match complaints.is_empty() {
        true => text,
        // Together, too, it is not too much.
        false => diagnostics.clean(&format!("{text}. It complained: {complaints}")),
    }
}
