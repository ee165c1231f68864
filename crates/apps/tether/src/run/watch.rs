//! Watching a tree of agents: every event of every session, as it is appended.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::{AgentPublished, Live};
use context::{Realm, Registration, Scope};
use llm::Usage;
use sandbox::Mode;
use session::{Event, Header, SessionId};
use subagent::{ChildDenial, ChildEnded, ChildProgress, ChildStarted, Descriptor, StopReason};
use tools::ToolProgress;

use super::tally::Tally;

/// Something that shows a run to somebody. Called from the agents' tasks, in order for each session.
pub(crate) trait View: Send + Sync {
    /// The top-level session is open.
    fn opened(&self, header: &Header, model: &str, mode: Mode);
    /// An event was appended to the log of an agent, and so handed to the store.
    fn event(&self, whose: &Whose, event: &Event);
    /// Something happens that is not logged.
    fn live(&self, live: &Live);
    /// A running tool shows something.
    fn tool_progress(&self, progress: &ToolProgress);
    /// A child can be seen.
    fn child_started(&self, child: &ChildStarted);
    /// A child without a log here does something.
    fn child_progress(&self, child: &ChildProgress);
    /// A child is done.
    fn child_ended(&self, child: &ChildEnded);
    /// Everything is written. An error: somebody who still listens has not been shown everything.
    fn finished(&self, summary: &Summary) -> io::Result<()>;
}

/// Whose event it is.
#[derive(Clone, Debug)]
pub(crate) struct Whose {
    pub(crate) session: SessionId,
    pub(crate) depth: u32,
    pub(crate) label: Option<Arc<str>>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) session: SessionId,
    pub(crate) stop_reason: StopReason,
    pub(crate) output: String,
    pub(crate) usage: Usage,
    pub(crate) denials: Vec<ChildDenial>,
}

/// The registrations of a view.
pub(crate) struct Watch {
    _registrations: [Registration; 6],
    _observing: Arc<Observing>,
}

/// Who is being watched. Not owned by the agents themselves: what ends one is appended while it goes away.
type Observing = Mutex<HashMap<SessionId, Registration>>;

impl Watch {
    /// Shows `view` every agent that is published from now on, from its first live event.
    pub(crate) fn start(app: &Scope, view: Arc<dyn View>, tally: Arc<Tally>) -> Self {
        let realm: &Realm = app.realm();
        let (published, live, tools, started) = (view.clone(), view.clone(), view.clone(), view.clone());
        let (progressed, ended, counted) = (view.clone(), view, tally.clone());
        let observing = Arc::new(Observing::default());
        let (begun, over) = (observing.clone(), observing.clone());
        let registrations = [
            realm.on(move |AgentPublished(agent)| {
                let session = agent.session();
                let whose = Whose {
                    session: session.id(),
                    depth: session.header().depth(),
                    label: session.latest::<Descriptor>().and_then(|descriptor| descriptor.label.clone()),
                };
                let (view, tally, id) = (published.clone(), tally.clone(), session.id());
                let told = session.observe(session.first_live_seq(), move |event| {
                    tally.note(whose.session, event);
                    view.event(&whose, event);
                });
                let before = lock(&begun).insert(id, told);
                drop(before);
            }),
            realm.on(move |happening: &Live| live.live(happening)),
            realm.on(move |progress: &ToolProgress| tools.tool_progress(progress)),
            realm.on(move |child: &ChildStarted| started.child_started(child)),
            realm.on(move |child: &ChildProgress| progressed.child_progress(child)),
            realm.on(move |child: &ChildEnded| {
                // One with a log has told of each where it happened.
                if child.child.is_none() {
                    counted.denied(child.result.denials.list.iter().cloned());
                }
                ended.child_ended(child);
                let told = child.child.and_then(|id| lock(&over).remove(&id));
                drop(told);
            }),
        ];
        Self { _registrations: registrations, _observing: observing }
    }
}

fn lock(observing: &Observing) -> MutexGuard<'_, HashMap<SessionId, Registration>> {
    observing.lock().unwrap_or_else(PoisonError::into_inner)
}
