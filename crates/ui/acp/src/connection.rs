//! One connection: what a client sends, and which of it is answered by whom.
//!
//! Handlers hold the loop in which the protocol's crate reads, and one that panics ends it. So they only look up who is
//! meant, and the work is done in tasks of the server's scope.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthenticateRequest, CancelNotification, CloseSessionRequest, DeleteSessionRequest,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, NewSessionRequest,
    PromptCapabilities, PromptRequest, ResumeSessionRequest, SessionCapabilities, SessionCloseCapabilities,
    SessionDeleteCapabilities, SessionListCapabilities, SessionResumeCapabilities, SetSessionConfigOptionRequest,
    SetSessionModeRequest, SetSessionModeResponse,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{Agent, Client, Error, JsonRpcResponse, on_receive_notification, on_receive_request};
use context::Stop;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::desk::{Desk, Opened};
use crate::errors::{failed, invalid};
use crate::wire::{self, Flow};

pub(crate) async fn serve<R, W>(desk: Arc<Desk>, flow: &Arc<Flow>, reader: R, writer: W) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    macro_rules! handler {
        ($method:ident, $request:ty, opens) => {{
            let desk = desk.clone();
            async move |request: $request, responder: Responder<_>, client: ConnectionTo<Client>| {
                let own = desk.clone();
                opening(&desk, responder, async move { own.$method(client, request).await })
            }
        }};
        ($method:ident, $request:ty) => {{
            let desk = desk.clone();
            async move |request: $request, responder: Responder<_>, _: ConnectionTo<Client>| {
                let own = desk.clone();
                work(&desk, responder, async move { own.$method(request).await })
            }
        }};
    }
    let prompts = desk.clone();
    let prompt = async move |request: PromptRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
        // Here, so that a cancel behind it finds it.
        let turn = match prompts.seat(&request.session_id).and_then(|seat| seat.begin()) {
            Ok(turn) => turn,
            Err(error) => return responder.respond_with_error(error),
        };
        let (asked, cancelled) = (responder.cancellation(), turn.cancelled.clone());
        work(&prompts, responder, async move {
            let mut running = std::pin::pin!(turn.run(request.prompt));
            tokio::select! {
                biased;
                done = &mut running => done,
                () = asked.cancelled() => {
                    cancelled.cancel();
                    running.await
                }
            }
        })
    };
    let cancels = desk.clone();
    let cancel = async move |cancel: CancelNotification, _: ConnectionTo<Client>| {
        if let Ok(seat) = cancels.seat(&cancel.session_id) {
            seat.cancel();
        }
        Ok(())
    };
    let modes = desk.clone();
    let mode = async move |request: SetSessionModeRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
        // Here, so that a prompt behind it is held to it.
        let seat = match modes.set_mode(&request) {
            Ok(seat) => seat,
            Err(error) => return responder.respond_with_error(error),
        };
        work(&modes, responder, async move {
            seat.saved().await?;
            Ok(SetSessionModeResponse::new())
        })
    };
    let options = desk.clone();
    let option =
        async move |request: SetSessionConfigOptionRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
            responder.respond_with_result(options.set_option(&request))
        };
    let initialize = async |request: InitializeRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
        responder.respond(initialized(&request))
    };
    let authenticate = async |_: AuthenticateRequest, responder: Responder<_>, _: ConnectionTo<Client>| {
        responder.respond_with_error(invalid("there is no way to authenticate, and no need to"))
    };
    let connection = Agent
        .v1()
        .name("tether")
        .on_receive_request(initialize, on_receive_request!())
        .on_receive_request(authenticate, on_receive_request!())
        .on_receive_request(handler!(new_session, NewSessionRequest, opens), on_receive_request!())
        .on_receive_request(handler!(load, LoadSessionRequest, opens), on_receive_request!())
        .on_receive_request(handler!(resume, ResumeSessionRequest, opens), on_receive_request!())
        .on_receive_request(handler!(close, CloseSessionRequest), on_receive_request!())
        .on_receive_request(handler!(delete, DeleteSessionRequest), on_receive_request!())
        .on_receive_request(handler!(list, ListSessionsRequest), on_receive_request!())
        .on_receive_request(mode, on_receive_request!())
        .on_receive_request(option, on_receive_request!())
        .on_receive_request(prompt, on_receive_request!())
        .on_receive_notification(cancel, on_receive_notification!());
    connection.connect_to(wire::lines(reader, writer, flow)).await
}

fn initialized(_: &InitializeRequest) -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new());
    let prompts = PromptCapabilities::new().image(true).embedded_context(true);
    let capabilities =
        AgentCapabilities::new().load_session(true).prompt_capabilities(prompts).session_capabilities(sessions);
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(Implementation::new("tether", env!("CARGO_PKG_VERSION")))
}

/// Answers from a task of the server's scope. Work that panics is an error of its own, and of nobody else's.
fn work<T: JsonRpcResponse>(
    desk: &Desk,
    responder: Responder<T>,
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<(), Error> {
    spawn(desk, async move {
        // Nobody is left to be told where that fails.
        let _ = responder.respond_with_result(caught(work).await);
    });
    Ok(())
}

/// As [`work`]; and once the client knows of the session it is told which commands there are.
fn opening<T: JsonRpcResponse>(
    desk: &Desk,
    responder: Responder<T>,
    work: impl Future<Output = Result<Opened<T>, Error>> + Send + 'static,
) -> Result<(), Error> {
    spawn(desk, async move {
        let (answer, seat) = match caught(work).await {
            Ok((answer, seat)) => (Ok(answer), Some(seat)),
            Err(error) => (Err(error), None),
        };
        let _ = responder.respond_with_result(answer);
        if let Some(seat) = seat {
            seat.announce().await;
        }
    });
    Ok(())
}

/// A server that is closing drops the task, and with it the responder, which answers then.
fn spawn(desk: &Desk, task: impl Future<Output = ()> + Send + 'static) {
    let _ = desk.ctx.spawn("acp request", Stop::Abort, task);
}

async fn caught<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|_| Err(failed("the work on this request panicked: this is a bug")))
}
