//! JSON lines on standard output, and nothing else there.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use agent::Live;
use sandbox::Mode;
use serde::Serialize;
use session::{Event, Header, SessionId};
use subagent::{ChildDenial, ChildEnded, ChildProgress, ChildStarted, StopReason};
use tools::ToolProgress;

use super::watch::{Summary, View, Whose};

/// Prints what happens, line by line. Once nobody reads any more, the task goes on in silence.
pub(crate) struct JsonLines(Mutex<Output>);

enum Output {
    Open(io::Stdout),
    Failed(io::Error),
}

impl JsonLines {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Output::Open(io::stdout())))
    }

    fn print(&self, line: &impl Serialize) {
        self.print_raw(&serde_json::to_string(line).expect("a line serializes to memory"));
    }

    fn print_raw(&self, line: &str) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Output::Open(stdout) = &mut *out else { return };
        let printed = stdout.write_all(line.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
        if let Err(error) = printed.and_then(|()| stdout.flush()) {
            *out = Output::Failed(error);
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
enum Line<'a> {
    Session {
        id: SessionId,
        cwd: &'a str,
    },
    Child {
        phase: &'static str,
        session: Option<SessionId>,
        parent: SessionId,
        provider: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
    },
    Result {
        session: SessionId,
        stop_reason: StopReason,
        output: &'a str,
        usage: llm::Usage,
        denials: &'a [ChildDenial],
    },
}

impl View for JsonLines {
    fn opened(&self, header: &Header, _: &str, _: Mode) {
        self.print(&Line::Session { id: header.id(), cwd: header.cwd() });
    }

    fn event(&self, whose: &Whose, event: &Event) {
        // The event stands as in the log, byte for byte.
        self.print_raw(&format!(r#"{{"type":"event","session":"{}","event":{}}}"#, whose.session, event.to_json()));
    }

    fn live(&self, _: &Live) {}

    fn tool_progress(&self, _: &ToolProgress) {}

    fn child_started(&self, child: &ChildStarted) {
        let ChildStarted { provider, parent, child: session, .. } = child;
        let (phase, stop_reason) = ("start", None);
        self.print(&Line::Child { phase, session: *session, parent: *parent, provider, stop_reason });
    }

    fn child_progress(&self, _: &ChildProgress) {}

    fn child_ended(&self, child: &ChildEnded) {
        let ChildEnded { provider, parent, child: session, result, .. } = child;
        let (phase, stop_reason) = ("end", Some(result.reason));
        self.print(&Line::Child { phase, session: *session, parent: *parent, provider, stop_reason });
    }

    fn finished(&self, summary: &Summary) -> io::Result<()> {
        let Summary { session, stop_reason, output, usage, denials } = summary;
        let (session, stop_reason, usage) = (*session, *stop_reason, *usage);
        self.print(&Line::Result { session, stop_reason, output, usage, denials });
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Output::Failed(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(io::Error::new(error.kind(), error.to_string()))
            }
            Output::Failed(_) | Output::Open(_) => Ok(()),
        }
    }
}
