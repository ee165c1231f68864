//! One open session: its app, its agent, and whoever works for the client at it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::{Agent, AgentPublished, Agents, Inbox, Live, Profile, Spec, TurnOutcome};
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ConfigOptionUpdate, ContentBlock, ContentChunk,
    CurrentModeUpdate, PromptResponse, SessionConfigOption, SessionModeState, SessionNotification, SessionUpdate,
    StopReason, UnstructuredCommandInput,
};
use agent_client_protocol::{Client, Error};
use context::{BoxError, Scope, Stop};
use llm::Route;
use permission::{ChooseError, Permission};
use session::{RequestHeaderEvent, Session, SessionId, SessionTitle};
use subagent::{ChildEnded, ChildProgress, ChildStarted};
use tokio_util::sync::CancellationToken;
use tools::ToolProgress;
use user_approval::Approval;

use crate::ask::Asker;
use crate::errors::{failed, invalid, refused};
use crate::host::House;
use crate::view::Feed;
use crate::wire::Flow;
use crate::{prompt, settings};

/// From where on a client is shown a session.
#[derive(Clone, Copy)]
pub(crate) enum From {
    /// Everything.
    Start,
    /// What comes.
    Now,
}

pub(crate) struct Seat {
    id: SessionId,
    app: Scope,
    agent: Agent,
    feed: Arc<Feed>,
    permission: Option<Arc<Permission>>,
    models: Vec<Route>,
    connection: ConnectionTo<Client>,
    flow: Arc<Flow>,
    /// Held while settings change, so that nobody is told of what they are half way.
    setting: Mutex<()>,
    /// The prompt that is being worked on.
    turn: Mutex<Option<CancellationToken>>,
}

/// The right to prompt, which one at a time has.
pub(crate) struct Turn {
    seat: Arc<Seat>,
    pub(crate) cancelled: CancellationToken,
}

impl Seat {
    /// Makes the agent of a session that the store keeps, and shows the session from there on.
    pub(crate) async fn open(
        house: House,
        session: Session,
        from: From,
        connection: ConnectionTo<Client>,
        flow: &Arc<Flow>,
    ) -> Result<Arc<Self>, BoxError> {
        let House { app, model, models } = house;
        let (id, root) = (session.id(), std::path::PathBuf::from(&**session.header().cwd()));
        let cursor = match from {
            From::Start => 0,
            From::Now => session.len(),
        };
        let feed = Feed::new(session.clone(), root, cursor);
        let last = session.latest::<RequestHeaderEvent>().map(|last| last.header.route());
        let profile = Profile::of(last.unwrap_or(model));
        let permission = app.get::<Permission>();
        watch(&app, id, &feed)?;
        if let Some(approval) = app.get::<Approval>() {
            let asker = Asker { session: id, connection: connection.clone(), feed: feed.clone() };
            app.own(approval.answer_with(Arc::new(asker)))?;
        }
        let grew = feed.clone();
        app.own(session.observe(session.len(), move |_| grew.grew()))?;
        let agents = app.get::<Agents>().ok_or("the app has no agents")?;
        let agent = agents.create(&app, Spec::new(session, profile)).await?;
        let (setting, turn) = (Mutex::default(), Mutex::default());
        let (client, window) = (connection.clone(), flow.clone());
        let seat = Self { id, app, agent, feed, permission, models, connection: client, flow: window, setting, turn };
        let seat = Arc::new(seat);
        let (weak, flow) = (Arc::downgrade(&seat), flow.clone());
        let feed = seat.feed.clone();
        seat.app.spawn("acp updates", Stop::Abort, async move {
            loop {
                let batch = feed.next().await;
                let mut updates = batch.updates.clone();
                if batch.settings
                    && let Some(seat) = weak.upgrade()
                {
                    updates.extend(seat.settings_changed());
                }
                for update in updates {
                    flow.room().await;
                    if connection.send_notification(SessionNotification::new(id.to_string(), update)).is_err() {
                        return;
                    }
                }
                feed.sent(&batch);
            }
        })?;
        // What the answer to the client tells is no news.
        seat.feed.is_news(&seat.settings_key());
        Ok(seat)
    }

    pub(crate) fn id(&self) -> SessionId {
        self.id
    }

    pub(crate) fn modes(&self) -> Option<SessionModeState> {
        Some(settings::modes(self.permission.as_deref()?, self.agent.session()))
    }

    pub(crate) fn options(&self) -> Vec<SessionConfigOption> {
        settings::options(&self.agent.profile().route, &self.models)
    }

    /// Tells the client which commands there are.
    pub(crate) async fn announce(&self) {
        let command = |listed: commands::Listed| {
            let hint = listed.hint.map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
            AvailableCommand::new(listed.name.to_string(), listed.description).input(hint)
        };
        let commands: Vec<_> = commands::list(self.agent.ctx().realm()).into_iter().map(command).collect();
        if !commands.is_empty() {
            self.send(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))).await;
        }
    }

    async fn send(&self, update: SessionUpdate) {
        self.flow.room().await;
        // A client that is gone need not be told.
        let _ = self.connection.send_notification(SessionNotification::new(self.id.to_string(), update));
    }

    /// Waits until the client was sent everything that is in the log now.
    pub(crate) async fn shown(&self) {
        self.feed.shown(self.agent.session().len()).await;
    }

    /// Sets the mode of whatever begins from now on.
    pub(crate) fn set_mode(&self, mode: &str) -> Result<(), Error> {
        let permission = self.permission.as_ref().ok_or_else(|| invalid("this app has no permission presets"))?;
        let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        permission.choose(self.agent.session(), mode).map_err(|error| match error {
            ChooseError::UnknownPreset { .. } => invalid(error),
            _ => refused(error),
        })?;
        Ok(())
    }

    /// Waits until everything that is in the log now is on the disk.
    pub(crate) async fn saved(&self) -> Result<(), Error> {
        self.agent.session().flush().await.map_err(failed)
    }

    pub(crate) fn set_model(&self, model: &str) -> Result<(), Error> {
        let offered = self.models.iter().find(|offered| offered.to_string() == model);
        let route = offered.ok_or_else(|| invalid(format!("no model `{model}` is offered here")))?.clone();
        let profile = Profile { route, ..Profile::clone(&self.agent.profile()) };
        self.agent.set_profile(profile);
        // The client is told by the answer.
        self.feed.is_news(&self.settings_key());
        Ok(())
    }

    pub(crate) fn takes_images(&self) -> bool {
        let route = self.agent.profile().route.clone();
        route.adapter(self.app.realm()).is_ok_and(|adapter| adapter.takes_images(&route.model))
    }

    /// Begins a prompt, unless another is worked on.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Turn, Error> {
        let mut turn = self.turn();
        if turn.is_some() {
            return Err(refused("the session works on a prompt: wait for its end, or cancel it"));
        }
        let cancelled = CancellationToken::new();
        *turn = Some(cancelled.clone());
        Ok(Turn { seat: self.clone(), cancelled })
    }

    /// Cancels the prompt that is worked on, if there is one, and whatever else the agent does.
    pub(crate) fn cancel(&self) {
        let turn = self.turn().clone();
        match turn {
            Some(cancelled) => cancelled.cancel(),
            None => drop(self.agent.cancel(CANCELLED, Inbox::Discard)),
        }
    }

    /// Ends the agent, then its app. What was said is in the log.
    pub(crate) async fn close(&self) -> Result<(), BoxError> {
        let disposed = self.agent.dispose_because("the client closed the session").await;
        let closed = self.app.close().await;
        disposed?;
        Ok(closed?)
    }

    fn settings_key(&self) -> String {
        let mode = self.modes().map(|modes| modes.current_mode_id.to_string());
        format!("{mode:?} {}", self.agent.profile().route)
    }

    fn settings_changed(&self) -> Vec<SessionUpdate> {
        let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.feed.is_news(&self.settings_key()) {
            return Vec::new();
        }
        let mode = self.modes().map(|modes| CurrentModeUpdate::new(modes.current_mode_id));
        let mode = mode.map(SessionUpdate::CurrentModeUpdate);
        let options = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(self.options()));
        mode.into_iter().chain([options]).collect()
    }

    fn turn(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the end of a turn is said to be caused by.
const CANCELLED: &str = "cancelled by the client";

impl Turn {
    /// Works on a prompt to its end, and until the client was sent everything about it.
    pub(crate) async fn run(self, content: Vec<ContentBlock>) -> Result<PromptResponse, Error> {
        let agent = &self.seat.agent;
        if let Some(text) = prompt::line(&content)
            && let Some(outcome) = commands::dispatch(agent.ctx(), agent.session(), text, &self.cancelled).await
        {
            return self.commanded(outcome).await;
        }
        let input = prompt::input(content, self.seat.takes_images())?;
        let session = agent.session();
        if session.latest::<SessionTitle>().is_none()
            && let Some(title) = prompt::title(&input)
        {
            let title = SessionTitle { title: title.into(), source: "prompt".into() };
            session.append(title).map_err(failed)?;
        }
        let receipt = agent.send(input).map_err(refused)?;
        let mut outcome = std::pin::pin!(receipt.outcome());
        let outcome: TurnOutcome = tokio::select! {
            biased;
            outcome = &mut outcome => outcome,
            () = self.cancelled.cancelled() => {
                agent.cancel(CANCELLED, Inbox::Discard);
                outcome.await
            }
        };
        self.seat.shown().await;
        prompt::stopped(&outcome)
    }
}

impl Turn {
    /// What a command says is for the person: the model never sees it.
    async fn commanded(&self, outcome: commands::Outcome) -> Result<PromptResponse, Error> {
        let said = match outcome {
            commands::Outcome::Cancelled => return Ok(PromptResponse::new(StopReason::Cancelled)),
            commands::Outcome::Said(said) => said,
            commands::Outcome::Failed(why) => return Err(refused(why)),
        };
        self.seat.agent.session().flush().await.map_err(failed)?;
        self.seat.shown().await;
        self.seat.send(SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(said)))).await;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.seat.turn() = None;
    }
}

/// Feeds what happens in an app into the view of its session.
fn watch(app: &Scope, top: SessionId, feed: &Arc<Feed>) -> Result<(), BoxError> {
    let realm = app.realm();
    let view = feed.clone();
    app.own(realm.on(move |live: &Live| view.heard(live)))?;
    let view = feed.clone();
    app.own(realm.on(move |progress: &ToolProgress| view.progressed(progress)))?;
    let view = feed.clone();
    app.own(realm.on(move |child: &ChildStarted| view.child(|nested| nested.started(child))))?;
    let view = feed.clone();
    app.own(realm.on(move |child: &ChildEnded| view.child(|nested| nested.ended(child))))?;
    let view = feed.clone();
    app.own(realm.on(move |told: &ChildProgress| view.child(|nested| nested.progressed(told))))?;
    let view = feed.clone();
    app.own(realm.on(move |AgentPublished(agent)| {
        let (view, id, session) = (view.clone(), agent.id(), agent.session());
        if id == top {
            return;
        }
        view.child(|nested| nested.published(id));
        let seen = session.observe(session.first_live_seq(), move |event| {
            view.child(|nested| nested.event(id, event));
        });
        // It goes with the child. One that ends already says nothing more.
        let _ = agent.ctx().own(seen);
    }))?;
    Ok(())
}
