//! The conversation: what a child is asked, in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::{ConnectionTo, Dispatch, schema};
use agent_client_protocol::{Agent, Client, Error, JsonRpcRequest, is_incoming_transport_closed, on_receive_dispatch};
use schema::{
    AuthenticateRequest, CancelNotification, ContentBlock, Implementation, InitializeRequest, NewSessionRequest,
    NewSessionResponse, PromptRequest, SetSessionModeRequest, StopReason,
};
use subprocess::Input;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::wire::{self, Frames};
use crate::{Config, Failure, Stage};

/// The most that is told of an error in a child's own words, in bytes, before it is cleaned.
const WORDS: usize = 16 * 1024;

/// One conversation with one child.
pub(crate) struct Conversation {
    pub(crate) config: Arc<Config>,
    /// Where the child's session is, absolute and canonical.
    pub(crate) cwd: PathBuf,
    pub(crate) prompt: Arc<str>,
    pub(crate) activity: Activity,
    pub(crate) stop: CancellationToken,
    /// Told when the session is open.
    pub(crate) opened: oneshot::Sender<()>,
    /// Says that the prompt may be sent.
    pub(crate) go: oneshot::Receiver<()>,
}

/// Has the conversation, and says how it ended; the connection itself may fail before.
pub(crate) async fn converse(frames: Frames, input: Input, conversation: Conversation, done: oneshot::Sender<Done>) {
    let (outgoing, incoming) = wire::lines(frames, input);
    let activity = conversation.activity.clone();
    let handle = async move |message: Dispatch, _: ConnectionTo<Agent>| handle(&activity, message);
    let main = async move |connection: ConnectionTo<Agent>| {
        let _gone = done.send(conversation.carry(&connection).await);
        // What is left to be written is nobody's concern: whoever waits has been told.
        std::future::pending::<Result<(), Error>>().await
    };
    let client = Client.v1().name("tether").on_receive_dispatch(handle, on_receive_dispatch!());
    let _failed = client.connect_with(agent_client_protocol::Lines::new(outgoing, incoming), main).await;
}

/// How a conversation ended.
pub(crate) type Done = Result<StopReason, Failure>;

/// Everything that a child sends. It holds up all that comes after it, so nothing in it waits.
fn handle(activity: &Activity, message: Dispatch) -> Result<(), Error> {
    match message {
        Dispatch::Request(request, responder) => match request.method() {
            "session/request_permission" => match activity.asked(request.params()) {
                Ok(answer) => responder.respond(answer.outcome),
                Err(_) => responder.respond_with_error(Error::invalid_params().data("this client has no such session")),
            },
            // Nothing else is offered: no files, no terminals.
            _ => responder.respond_with_error(Error::method_not_found()),
        },
        Dispatch::Notification(notification) => {
            if notification.method() == "session/update" {
                activity.update(notification.into_parts().1);
            }
            Ok(())
        }
        Dispatch::Response(result, router) => router.route_with_result(result),
    }
}

impl Conversation {
    async fn carry(self, connection: &ConnectionTo<Agent>) -> Done {
        let Self { config, cwd, prompt, activity, stop, opened, go } = self;
        let asker = Asker { connection, stop: &stop, patience: config.patience };
        let hello = InitializeRequest::new(ProtocolVersion::V1)
            .client_info(Implementation::new("tether", env!("CARGO_PKG_VERSION")));
        let hello = asker.ask(Stage::Initialize, hello).await?;
        if hello.protocol_version != ProtocolVersion::V1 {
            return Err(Failure::Version(hello.protocol_version));
        }
        if let Some(method) = &config.auth {
            let offered: Vec<String> = hello.auth_methods.iter().map(|method| method.id().to_string()).collect();
            if !offered.is_empty() && !offered.iter().any(|offered| **offered == **method) {
                return Err(Failure::NoAuth { wanted: method.to_string(), offered });
            }
            asker.ask(Stage::Authenticate, AuthenticateRequest::new(method.to_string())).await?;
        }
        let session = asker.ask(Stage::NewSession, NewSessionRequest::new(cwd)).await?;
        if let Some(mode) = &config.session_mode {
            check_mode(mode, &session)?;
            let request = SetSessionModeRequest::new(session.session_id.clone(), mode.to_string());
            asker.ask(Stage::SetMode, request).await?;
        }
        let session = session.session_id;
        activity.prompts(session.0.clone());
        let _gone = opened.send(());
        tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Failure::Stopped),
            go = go => go.map_err(|_| Failure::Stopped)?,
        }
        let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(prompt.to_string())]);
        let mut asked = std::pin::pin!(connection.send_request(request).block_task());
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            answer = &mut asked => {
                return answer.map(|answer| answer.stop_reason).map_err(|error| failed(Stage::Prompt, &error));
            }
        }
        activity.stops();
        if connection.send_notification(CancelNotification::new(session)).is_ok() {
            // Whatever it answers comes too late.
            let _late = timeout(config.settings.graces.cancel, asked).await;
        }
        Err(Failure::Stopped)
    }
}

/// Asks one thing after another.
struct Asker<'a> {
    connection: &'a ConnectionTo<Agent>,
    stop: &'a CancellationToken,
    patience: Duration,
}

impl Asker<'_> {
    async fn ask<R: JsonRpcRequest>(&self, stage: Stage, request: R) -> Result<R::Response, Failure> {
        let answer = self.connection.send_request(request).block_task();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Failure::Stopped),
            answer = timeout(self.patience, answer) => match answer {
                Err(_) => Err(Failure::TimedOut { stage, after: self.patience }),
                Ok(answer) => answer.map_err(|error| failed(stage, &error)),
            },
        }
    }
}

/// One that says which modes it has, and not this one, is not asked. Some say nothing.
fn check_mode(wanted: &str, session: &NewSessionResponse) -> Result<(), Failure> {
    let Some(modes) = &session.modes else { return Ok(()) };
    let offered: Vec<String> = modes.available_modes.iter().map(|mode| mode.id.to_string()).collect();
    match offered.is_empty() || offered.iter().any(|offered| offered == wanted) {
        true => Ok(()),
        false => Err(Failure::NoMode { wanted: wanted.to_owned(), offered }),
    }
}

fn failed(stage: Stage, error: &Error) -> Failure {
    if is_incoming_transport_closed(error) {
        return Failure::Closed { stage };
    }
    Failure::Refused { stage, words: words(error) }
}

/// What an error says: its message, and the reason where programs put it.
fn words(error: &Error) -> String {
    let reason = error.data.as_ref().and_then(|data| {
        let inside = ["details", "message", "reason", "error"].iter().find_map(|key| data[*key].as_str());
        data.as_str().or(inside)
    });
    let reason = reason.filter(|reason| !error.message.contains(reason));
    let text = reason.map_or_else(|| error.message.clone(), |reason| format!("{}: {reason}", error.message));
    let text = if text.trim().is_empty() { format!("error {}", i32::from(error.code)) } else { text };
    text[..text.floor_char_boundary(WORDS)].to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(message: &str, data: Option<Value>, says: &str) {
        let error = Error::new(-32603, message);
        assert_eq!(words(&data.into_iter().fold(error, |error, data| error.data(data))), says);
    }

    #[test]
    fn an_error_is_told_in_its_own_words() {
        check("no", None, "no");
        check("Internal error", Some(json!("it rains")), "Internal error: it rains");
        check("Internal error", Some(json!({ "details": "it rains" })), "Internal error: it rains");
        check("it rains a lot", Some(json!({ "message": "it rains" })), "it rains a lot");
        check("no", Some(json!([1, { "x": 2 }])), "no");
        check(" ", None, "error -32603");
    }
}
