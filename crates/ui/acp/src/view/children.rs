//! What children do, told in the call that asked for them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sandbox::one_line;
use session::{AssistantMessage, Event, SessionId, ToolCalled, ToolReturned};
use subagent::{CallState, ChildEnded, ChildProgress, ChildStarted, Doing, RunId};

use super::{Running, tool};

/// How much of an answer is told, in characters.
const MOST_SAID: usize = 200;
/// How many children may be at work before they are announced, and how much of what they do is kept until then.
const MOST_EARLY: usize = 64;

/// The children below one session, each with the call of that session which they work for.
#[derive(Default)]
pub(super) struct Children {
    /// Those with a log.
    here: HashMap<SessionId, Child>,
    /// Those that are elsewhere.
    elsewhere: HashMap<RunId, Child>,
    /// Those with a log that were not announced yet, with what they did already.
    early: VecDeque<(SessionId, Vec<Told>)>,
    /// How those are held that are elsewhere and were not announced yet.
    held: VecDeque<(RunId, String)>,
}

/// What is said of a child when it can be seen.
pub(super) struct Announced {
    pub(super) who: Who,
    pub(super) parent: SessionId,
    /// The parent's call.
    pub(super) call: Option<Arc<str>>,
    pub(super) name: String,
}

/// Where a child is.
pub(super) enum Who {
    Here(SessionId),
    Elsewhere(RunId),
}

impl From<&ChildStarted> for Announced {
    fn from(started: &ChildStarted) -> Self {
        let ChildStarted { run, provider, label, call, parent, child } = started;
        let name = label.as_ref().map_or_else(|| provider.to_string(), |label| one_line(label).to_string());
        let who = child.map_or(Who::Elsewhere(*run), Who::Here);
        Self { who, parent: *parent, call: call.clone(), name }
    }
}

/// What a child does.
enum Told {
    /// It says something.
    Words(Box<str>),
    /// It has said what it had to say.
    Silence,
    Line(String),
}

struct Child {
    call: Arc<str>,
    name: String,
    /// Whether its words are being written at the end.
    speaks: bool,
}

type Calls = HashMap<Arc<str>, Running>;

impl Child {
    fn tell(&mut self, told: Told, running: &mut Running) {
        match told {
            Told::Words(text) => {
                if !std::mem::replace(&mut self.speaks, true) {
                    running.tail.line(&format!("{}:", self.name));
                }
                running.tail.push(&text);
            }
            Told::Silence => self.speaks = false,
            Told::Line(line) => {
                self.speaks = false;
                running.tail.line(&format!("{}: {line}", self.name));
            }
        }
    }
}

impl Children {
    /// There is a child with a log, which may work before it is announced.
    pub(super) fn published(&mut self, child: SessionId) {
        if self.early.len() == MOST_EARLY {
            // Its start failed, or took longer than those of many others.
            self.early.pop_front();
        }
        self.early.push_back((child, Vec::new()));
    }

    pub(super) fn started(&mut self, top: SessionId, started: Announced, calls: &mut Calls) {
        let early = match &started.who {
            Who::Here(id) => taken(&mut self.early, id).unwrap_or_default(),
            Who::Elsewhere(run) => taken(&mut self.held, run).map(Told::Line).into_iter().collect(),
        };
        let above = self.here.get(&started.parent);
        let call = match above {
            Some(above) => Some(above.call.clone()),
            None if started.parent == top => started.call,
            None => None,
        };
        let Some(call) = call else { return };
        let name = match above {
            Some(above) => format!("{} › {}", above.name, started.name),
            None => started.name,
        };
        let running = calls.entry(call.clone()).or_insert_with(Running::unknown);
        running.delegates = true;
        running.tail.line(&format!("{name}: started"));
        let mut child = Child { call, name, speaks: false };
        early.into_iter().for_each(|told| child.tell(told, running));
        match started.who {
            Who::Here(id) => drop(self.here.insert(id, child)),
            Who::Elsewhere(run) => drop(self.elsewhere.insert(run, child)),
        }
    }

    pub(super) fn ended(&mut self, ended: &ChildEnded, calls: &mut Calls) {
        let child = match ended.child {
            Some(id) => self.here.remove(&id),
            None => self.elsewhere.remove(&ended.run),
        };
        let Some(child) = child else { return };
        if let Some(running) = calls.get_mut(&child.call) {
            running.tail.line(&format!("{}: {}", child.name, ended.result.reason.as_str()));
        }
    }

    pub(super) fn heard(&mut self, child: SessionId, text: &str, calls: &mut Calls) {
        self.tell(child, Told::Words(text.into()), calls);
    }

    /// What a child does that is elsewhere.
    pub(super) fn progressed(&mut self, told: &ChildProgress, calls: &mut Calls) {
        let Some(child) = self.elsewhere.get_mut(&told.run) else {
            // It is held before there is anything to announce. What others do was asked for in a call that is over.
            if let Doing::Held(how) = &told.doing {
                if self.held.len() == MOST_EARLY {
                    self.held.pop_front();
                }
                self.held.push_back((told.run, one_line(how).to_string()));
            }
            return;
        };
        let Some(running) = calls.get_mut(&child.call) else { return };
        let told = match &told.doing {
            Doing::Says(text) => Told::Words((&**text).into()),
            Doing::Held(how) => Told::Line(one_line(how).to_string()),
            Doing::Calls { title, state: CallState::Running, .. } => Told::Line(one_line(title).to_string()),
            Doing::Calls { title, state: CallState::Failed, .. } => Told::Line(format!("{}: failed", one_line(title))),
            Doing::Calls { state: CallState::Pending | CallState::Done, .. } => return,
            Doing::Denied(denial) => Told::Line(format!("denied: {} {}", denial.operation, one_line(&denial.target))),
        };
        child.tell(told, running);
    }

    pub(super) fn event(&mut self, child: SessionId, event: &Event, calls: &mut Calls) {
        let told = if event.get::<AssistantMessage>().is_some() {
            Told::Silence
        } else if let Some(call) = event.get::<ToolCalled>() {
            Told::Line(tool::shown(&call.name, &tool::arguments(&call.arguments), std::path::Path::new("/")).title)
        } else if let Some(result) = event.get::<ToolReturned>()
            && result.is_error
        {
            let text: String = result.content.iter().filter_map(llm::Content::as_text).collect();
            let first: String = text.lines().next().unwrap_or_default().chars().take(MOST_SAID).collect();
            Told::Line(one_line(&first).to_string())
        } else {
            return;
        };
        self.tell(child, told, calls);
    }

    /// Nobody looks at the call's progress any more; a child in the background may go on.
    pub(super) fn answered(&mut self, call: &Arc<str>) {
        self.here.retain(|_, child| child.call != *call);
        self.elsewhere.retain(|_, child| child.call != *call);
    }

    fn tell(&mut self, id: SessionId, told: Told, calls: &mut Calls) {
        if let Some(child) = self.here.get_mut(&id) {
            if let Some(running) = calls.get_mut(&child.call) {
                child.tell(told, running);
            }
        } else if let Some((_, early)) = self.early.iter_mut().find(|(early, _)| *early == id)
            && early.len() < MOST_EARLY
        {
            early.push(told);
        }
    }
}

/// What waits under this name, and waits no longer.
fn taken<N: PartialEq, T>(waiting: &mut VecDeque<(N, T)>, name: &N) -> Option<T> {
    let at = waiting.iter().position(|(waits, _)| waits == name)?;
    waiting.remove(at).map(|(_, told)| told)
}
