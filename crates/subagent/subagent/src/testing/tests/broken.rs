//! Providers of agents in this process, each with one bug.

use std::sync::{Arc, Mutex};

use agent::{Agent, AgentRef, Agents, Inbox, Input, Profile, Spec, TurnOutcome};
use async_trait::async_trait;
use context::{Boxed, Change, Ctx, Registration, Scope, Stop};
use llm::{Content, Message, Role};
use session::{Delegation, Seed, Session, TurnReason};
use system_prompt::{Section, Text};

use super::house::OTHER;
use crate::{
    Capability, ChildStarted, Composed, RunResult, Start, StartError, Started, StopReason, SubagentProvider, Subagents,
    compose,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// Nobody learns how the child ended.
    NeverSettles,
    /// Nor when its scope closes.
    NeverSettlesWhenClosed,
    /// A child that fails is said to be done.
    FailuresComplete,
    FailsWithoutAWord,
    /// A child that is stopped is said to be done.
    CancelsComplete,
    /// The output is the last message of the log, the parent's if the child has none.
    SpeaksForTheParent,
    /// Every child's result is the first one's.
    RepeatsTheFirst,
    /// A task of the run never notices that it is to stop.
    IgnoresCancellation,
    /// A task of the app's works for a child that is gone.
    LeaksATask,
    /// The child is the app's and not the run's.
    LeaksTheChild,
    /// Something is registered for a child that is gone.
    LeaksASection,
    /// Offers what may be asked for at the start, and forgets about it.
    IgnoresOptions,
    /// Cuts its children's replies shorter than they may be.
    IgnoresTheCap,
    /// What it says of the conversation is the opposite of what it does.
    LiesAboutContext {
        fork: bool,
    },
    /// Captures for the second time, when it is polled.
    CapturesLate,
    /// Has another provider start the child, when it is polled.
    DelegatesLate,
    /// Says that it started a child that is still being made.
    StartsTooEarly,
    /// Does not say which session its child has.
    HidesItsChild,
    /// The child is gone as soon as it is done.
    GoesTooEarly,
    /// Fails after its child was seen.
    FailsTooLate,
    /// Tells again what was told already.
    TellsTwice,
    /// A child that could not be made is one that failed.
    SwallowsFailures,
    /// The child's session is made as the provider sees fit.
    ComposesByHand {
        flushes: bool,
    },
    /// The child is stopped when its provider's name is given back.
    GoesWithItsName,
}

/// Does everything that it owes, but for its bug.
pub(super) struct Broken {
    app: Ctx,
    agents: Arc<Agents>,
    bug: Option<Bug>,
    first: Arc<Mutex<Option<RunResult>>>,
}

impl Broken {
    pub(super) fn new(app: &Scope, agents: Arc<Agents>, bug: Option<Bug>) -> Self {
        if bug == Some(Bug::TellsTwice) {
            let (realm, again) = (app.realm().clone(), Mutex::new(Vec::new()));
            let tells = app.realm().on(move |told: &ChildStarted| {
                let is_new = {
                    let mut again = again.lock().expect("nobody panics");
                    let is_new = !again.contains(&told.run);
                    again.push(told.run);
                    is_new
                };
                if is_new {
                    realm.emit(told);
                }
            });
            app.own(tells).expect("the app is open");
        }
        Self { app: Ctx::clone(app), agents, bug, first: Arc::default() }
    }

    fn seed(&self) -> Seed {
        match self.bug {
            Some(Bug::LiesAboutContext { fork: true } | Bug::SpeaksForTheParent) => Seed::ClosedTurns,
            _ => Seed::Fresh,
        }
    }

    /// What goes wrong before there is a child.
    fn spoil(&self, start: &mut Start) -> Result<(), StartError> {
        match self.bug {
            Some(Bug::LeaksTheChild) => start.ctx = self.app.clone(),
            Some(Bug::IgnoresOptions) => {
                start.request.output_schema = None;
                start.request.tool_filter = None;
                start.request.persona = None;
            }
            Some(Bug::IgnoresTheCap) => start.request.max_tokens = Some(1),
            Some(Bug::CapturesLate) => start.delegation = Delegation::capture(start.parent.session())?,
            Some(Bug::IgnoresCancellation) => {
                let _ = start.ctx.spawn("deaf", Stop::Join, std::future::pending());
            }
            Some(Bug::LeaksATask) => {
                let _ = self.app.spawn("left", Stop::Abort, std::future::pending());
            }
            Some(Bug::LeaksASection) => {
                let name = format!("left-{}", start.delegation.child());
                let _ = self.app.register::<dyn Section>(name, Text::new(0, "left"));
            }
            _ => {}
        }
        Ok(())
    }

    async fn delegate(&self, start: Start) -> Result<Started, StartError> {
        let subagents = self.app.get::<Subagents>().expect("the fixture provides it");
        let run = Arc::new(subagents.start(&start.parent, OTHER, start.request).await?);
        let (child, held) = (run.child(), run.clone());
        start.ctx.own(Registration::new(move || drop(held))).map_err(|_| StartError::ParentClosing)?;
        Ok(Started { child, result: Box::pin(async move { run.result().await.clone() }) })
    }

    fn start_too_early(&self, start: Start) -> Result<Started, StartError> {
        let (agents, seed, ctx, child) =
            (self.agents.clone(), self.seed(), start.ctx.clone(), start.delegation.child());
        let (done, result) = tokio::sync::oneshot::channel();
        let making = async move {
            if let Ok(Composed { mut agent, .. }) = compose(&agents, start, seed).await {
                let receipt = agent.prompted().expect("it was prompted");
                let session = agent.leave().session().clone();
                let _ = done.send(told(receipt.outcome().await, &session, false));
            }
        };
        ctx.spawn("making", Stop::Join, making).map_err(|_| StartError::ParentClosing)?;
        let result = async { result.await.unwrap_or_else(|_| RunResult::ended(StopReason::Aborted)) };
        Ok(Started { child: Some(child), result: Box::pin(result) })
    }

    async fn compose_by_hand(&self, start: Start, flushes: bool) -> Result<Started, StartError> {
        if flushes {
            start.delegation.parent_session().flush().await.map_err(StartError::ParentLog)?;
        }
        let (session, profile) =
            (Session::delegated(start.delegation, Seed::Fresh), Profile::clone(&start.parent.profile()));
        let route = start.request.model.unwrap_or(profile.route);
        let prompt = Some(Input::prompt(&*start.request.prompt));
        let profile = Profile { route, ..profile };
        let spec = Spec { prompt, ..Spec::new(session, profile) };
        let agent = self.agents.create(&start.ctx, spec).await?;
        Ok(Started { child: Some(agent.id()), result: self.result(agent, false) })
    }

    /// Stops the child as soon as any provider goes.
    fn stop_with_the_name(&self, ctx: &Ctx, agent: &AgentRef) {
        let (subagents, agent) = (self.app.get::<Subagents>().expect("the fixture provides it"), agent.clone());
        let watches = subagents.providers().on_change(move |change| {
            if matches!(change, Change::Removed(..)) {
                agent.cancel("its provider is gone", Inbox::Discard);
            }
        });
        let _ = ctx.own(watches);
    }

    fn result(&self, mut agent: Agent, structured: bool) -> Boxed<'static, RunResult> {
        let (bug, first) = (self.bug, self.first.clone());
        let (receipt, session) = (agent.prompted().expect("it was prompted"), agent.session().clone());
        let closing = agent.ctx().cancelled().clone();
        let brief = match bug {
            Some(Bug::GoesTooEarly) => Some(agent),
            _ => {
                agent.leave();
                None
            }
        };
        Box::pin(async move {
            let mut result = told(receipt.outcome().await, &session, structured);
            if let Some(agent) = brief {
                agent.dispose().await.expect("it goes quietly");
            }
            let Some(bug) = bug else { return result };
            match (bug, result.reason) {
                (Bug::NeverSettles, _) => std::future::pending().await,
                (Bug::NeverSettlesWhenClosed, _) if closing.is_cancelled() => std::future::pending().await,
                (Bug::FailuresComplete, StopReason::Error) => result.reason = StopReason::Completed,
                (Bug::CancelsComplete, StopReason::Aborted) => result.reason = StopReason::Completed,
                (Bug::FailsWithoutAWord, _) => result.message = None,
                (Bug::SpeaksForTheParent, _) => {
                    let messages = session.messages().expect("the log is whole");
                    let said = messages.iter().rfind(|message| message.role == Role::Assistant);
                    result.output = said.map_or_else(Vec::new, |message| texts(message));
                }
                (Bug::RepeatsTheFirst, _) => {
                    let mut first = first.lock().expect("nobody panics");
                    result = first.get_or_insert(result).clone();
                }
                _ => {}
            }
            result
        })
    }
}

#[async_trait]
impl SubagentProvider for Broken {
    fn offers(&self) -> &'static [Capability] {
        &[Capability::OutputSchema, Capability::DepthLimit, Capability::ToolFilter, Capability::Persona]
    }

    fn inherits_parent_context(&self) -> bool {
        matches!(self.bug, Some(Bug::LiesAboutContext { fork: false } | Bug::SpeaksForTheParent))
    }

    async fn start(&self, mut start: Start) -> Result<Started, StartError> {
        self.spoil(&mut start)?;
        let provider = start.provider.clone();
        match self.bug {
            Some(Bug::StartsTooEarly) => return self.start_too_early(start),
            Some(Bug::DelegatesLate) => return self.delegate(start).await,
            Some(Bug::ComposesByHand { flushes }) => return self.compose_by_hand(start, flushes).await,
            _ => {}
        }
        let ctx = start.ctx.clone();
        let Composed { agent, structured } = match compose(&self.agents, start, self.seed()).await {
            Err(_) if self.bug == Some(Bug::SwallowsFailures) => {
                return Ok(Started::elsewhere(std::future::ready(RunResult::ended(StopReason::Error))));
            }
            composed => composed?,
        };
        if self.bug == Some(Bug::GoesWithItsName) {
            self.stop_with_the_name(&ctx, agent.handle());
        }
        if self.bug == Some(Bug::FailsTooLate) {
            return Err(StartError::Provider { provider, source: "not today".into() });
        }
        let child = (self.bug != Some(Bug::HidesItsChild)).then(|| agent.id());
        Ok(Started { child, result: self.result(agent, structured) })
    }
}

/// What a provider without a bug tells.
fn told(outcome: TurnOutcome, session: &Session, structured: bool) -> RunResult {
    let message = match &outcome.reason {
        TurnReason::Error { message } | TurnReason::Blocked { message } => message.clone(),
        _ => None,
    };
    let output = outcome.output.map_or_else(Vec::new, |message| texts(&message));
    let ended = RunResult { output, message, usage: outcome.usage, ..RunResult::ended((&outcome.reason).into()) };
    if !structured || ended.reason != StopReason::Completed {
        return ended;
    }
    match Composed::handed_in(session) {
        Some(value) => RunResult { structured: Some(value), ..ended },
        None => RunResult { reason: StopReason::Error, ..ended },
    }
}

fn texts(message: &Message) -> Vec<Content> {
    message.content.iter().filter(|part| matches!(part, Content::Text { .. })).cloned().collect()
}
