//! What children do, told in the call that asked for them.

use std::collections::HashMap;
use std::sync::Arc;

use sandbox::one_line;
use session::{AssistantMessage, Event, SessionId, ToolCalled, ToolReturned};
use subagent::{CallState, ChildEnded, ChildProgress, ChildStarted, Doing, RunId};

use super::{Running, tool};

/// How much of an answer is told, in characters.
const MOST_SAID: usize = 200;

/// The children below one session, each with the call of that session which they work for.
#[derive(Default)]
pub(super) struct Children {
    /// Those with a log.
    here: HashMap<SessionId, Child>,
    /// Those that are elsewhere.
    elsewhere: HashMap<RunId, Child>,
}

struct Child {
    call: Arc<str>,
    name: String,
    /// Whether its words are being written at the end.
    speaks: bool,
}

type Calls = HashMap<Arc<str>, Running>;

impl Child {
    fn says(&mut self, text: &str, running: &mut Running) {
        if !std::mem::replace(&mut self.speaks, true) {
            running.tail.line(&format!("{}:", self.name));
        }
        running.tail.push(text);
    }
}

impl Children {
    pub(super) fn started(&mut self, top: SessionId, started: &ChildStarted, calls: &mut Calls) {
        let above = self.here.get(&started.parent);
        let call = match above {
            Some(above) => Some(above.call.clone()),
            None if started.parent == top => started.call.clone(),
            None => None,
        };
        let Some(call) = call else { return };
        let own =
            started.label.as_ref().map_or_else(|| started.provider.to_string(), |label| one_line(label).to_string());
        let name = match above {
            Some(above) => format!("{} › {own}", above.name),
            None => own,
        };
        let running = calls.entry(call.clone()).or_insert_with(Running::unknown);
        running.delegates = true;
        running.tail.line(&format!("{name}: started"));
        let child = Child { call, name, speaks: false };
        match started.child {
            Some(id) => drop(self.here.insert(id, child)),
            None => drop(self.elsewhere.insert(started.run, child)),
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
        if let Some((child, running)) = self.find(child, calls) {
            child.says(text, running);
        }
    }

    /// What a child does that is elsewhere.
    pub(super) fn progressed(&mut self, told: &ChildProgress, calls: &mut Calls) {
        let Some(child) = self.elsewhere.get_mut(&told.run) else { return };
        let Some(running) = calls.get_mut(&child.call) else { return };
        let line = match &told.doing {
            Doing::Says(text) => return child.says(text, running),
            Doing::Held(how) => one_line(how).to_string(),
            Doing::Calls { title, state: CallState::Running, .. } => one_line(title).to_string(),
            Doing::Calls { title, state: CallState::Failed, .. } => format!("{}: failed", one_line(title)),
            Doing::Calls { state: CallState::Pending | CallState::Done, .. } => return,
            Doing::Denied(denial) => format!("denied: {} {}", denial.operation, one_line(&denial.target)),
        };
        child.speaks = false;
        running.tail.line(&format!("{}: {line}", child.name));
    }

    pub(super) fn event(&mut self, child: SessionId, event: &Event, calls: &mut Calls) {
        let Some((child, running)) = self.find(child, calls) else { return };
        if event.get::<AssistantMessage>().is_some() {
            child.speaks = false;
        } else if let Some(call) = event.get::<ToolCalled>() {
            let shown = tool::shown(&call.name, &tool::arguments(&call.arguments), std::path::Path::new("/"));
            running.tail.line(&format!("{}: {}", child.name, shown.title));
        } else if let Some(result) = event.get::<ToolReturned>()
            && result.is_error
        {
            let text: String = result.content.iter().filter_map(llm::Content::as_text).collect();
            let first: String = text.lines().next().unwrap_or_default().chars().take(MOST_SAID).collect();
            running.tail.line(&format!("{}: {}", child.name, one_line(&first)));
        }
    }

    /// Nobody looks at the call's progress any more; a child in the background may go on.
    pub(super) fn answered(&mut self, call: &Arc<str>) {
        self.here.retain(|_, child| child.call != *call);
        self.elsewhere.retain(|_, child| child.call != *call);
    }

    fn find<'a>(&'a mut self, child: SessionId, calls: &'a mut Calls) -> Option<(&'a mut Child, &'a mut Running)> {
        let child = self.here.get_mut(&child)?;
        let running = calls.get_mut(&child.call)?;
        Some((child, running))
    }
}
