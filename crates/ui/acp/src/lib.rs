//! Tether as an agent of the Agent Client Protocol (version 1): editors and scripts drive its sessions over two streams.
//!
//! *Owns:* the connection, which sessions are open over it, what a client is shown of them, and asking the person at it.
//! *Never:* policy, the loop, files; a client's wish in place of a session's mode; an agent that waits for a client which
//! does not read.
//!
//! The protocol's words are those of the crate `agent-client-protocol`. [`serve`] works with any two streams; the apps that
//! sessions run in come from a [`Host`].

mod ask;
mod connection;
mod desk;
mod errors;
mod host;
mod prompt;
mod seat;
mod settings;
mod time;
mod view;
mod wire;

use std::sync::Arc;

use context::{BoxError, Ctx};
use tokio::io::{AsyncRead, AsyncWrite};

pub use host::{Host, House};

/// Serves one connection until its client closes it, or `ctx` closes; then all its sessions are closed.
///
/// # Errors
///
/// What broke the connection, if the client did not simply leave.
pub async fn serve<R, W>(ctx: &Ctx, host: Arc<dyn Host>, reader: R, writer: W) -> Result<(), BoxError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let flow = wire::Flow::new();
    let desk = desk::Desk::new(ctx, host, flow.clone());
    let serving = connection::serve(desk.clone(), &flow, reader, writer);
    let served = ctx.cancelled().run_until_cancelled(serving).await;
    desk.close_all().await;
    match served {
        None | Some(Ok(())) => Ok(()),
        Some(Err(error)) => Err(error.into()),
    }
}
