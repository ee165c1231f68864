//! What the loop holds for one agent, from turn to turn.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use agent::{
    AgentRef, BeforeStep, Driven, Live, ModelRequest, OnRequestError, OnTurnStop, Opening, Profile, TurnOutcome,
};
use context::{Emitter, Middleware};
use futures_util::FutureExt as _;
use llm::{LlmAdapter, Usage};
use session::{Closed, RequestHeader, Session, TurnEnd, TurnReason, TurnStart};
use system_prompt::Prompt;
use tools::Runner;

/// Everything that the loop looks up once and keeps.
pub(crate) struct Hand {
    pub(crate) driven: Driven,
    pub(crate) agent: AgentRef,
    pub(crate) session: Session,
    pub(crate) tools: Runner,
    pub(crate) prompt: Prompt,
    pub(crate) live: Emitter<Live>,
    pub(crate) before_step: Middleware<BeforeStep>,
    pub(crate) model_request: Middleware<ModelRequest>,
    pub(crate) on_request_error: Middleware<OnRequestError>,
    pub(crate) on_turn_stop: Middleware<OnTurnStop>,
    /// The adapter, as of a version of the realm.
    pub(crate) adapter: Option<(u64, Arc<dyn LlmAdapter>)>,
    /// Model and sampling, as the header and the adapter have them.
    pub(crate) profile: Arc<Profile>,
    /// The last header that the log holds.
    pub(crate) header: Option<Arc<RequestHeader>>,
    /// What the model was last told of the facts that change.
    pub(crate) told: Told,
}

/// What the model was last told.
pub(crate) enum Told {
    /// The log has not been looked at.
    Unread,
    /// It was told this, or nothing.
    Last(Option<Arc<str>>),
}

impl Hand {
    pub(crate) fn new(driven: Driven) -> Self {
        let agent = driven.agent().clone();
        let session = agent.session().clone();
        let realm = agent.ctx().realm();
        Self {
            tools: Runner::new(realm),
            prompt: Prompt::new(realm),
            live: realm.emitter(),
            before_step: realm.middleware(),
            model_request: realm.middleware(),
            on_request_error: realm.middleware(),
            on_turn_stop: realm.middleware(),
            adapter: None,
            profile: agent.profile(),
            header: None,
            told: Told::Unread,
            driven,
            agent,
            session,
        }
    }

    /// Turn after turn, until the agent ends or its log takes no more.
    pub(crate) async fn serve(mut self) {
        while let Some(mut opening) = self.driven.next_turn().await {
            let turn = self.session.latest::<TurnStart>().map_or(0, |last| last.turn).saturating_add(1);
            let Ok(outcome) = self.run_turn(turn, &mut opening).await else { return };
            self.driven.settle(&opening, outcome);
        }
    }

    async fn run_turn(&mut self, turn: u32, opening: &mut Opening) -> Result<TurnOutcome, Closed> {
        let mut outcome = TurnOutcome { turn, reason: TurnReason::Completed, output: None, usage: Usage::default() };
        self.session.append(TurnStart { turn })?;
        let played = AssertUnwindSafe(self.play(opening, &mut outcome)).catch_unwind().await;
        match played {
            Ok(played) => {
                outcome.reason = played?;
                self.session.append(TurnEnd { turn, reason: outcome.reason.clone() })?;
            }
            Err(_) => {
                outcome.reason = TurnReason::Error { message: Some("the turn panicked; this is a bug".into()) };
                let why = "failed: the turn ended before this call returned; it may have run in part";
                self.session.abandon_turn(outcome.reason.clone(), why)?;
            }
        }
        if let Err(error) = self.session.flush().await {
            tracing::warn!(session = %self.session.id(), %error, "a turn could not be made durable");
            if outcome.reason == TurnReason::Completed {
                outcome.reason = TurnReason::Error { message: Some(error.to_string().into()) };
            }
        }
        Ok(outcome)
    }
}
