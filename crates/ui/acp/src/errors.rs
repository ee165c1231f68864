//! What a client is told that asked for what cannot be.

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema;
use sandbox::one_line;

/// `-32602`: the request asks for what cannot be.
pub(crate) fn invalid(why: impl std::fmt::Display) -> Error {
    said(-32602, why)
}

/// `-32600`: not now.
pub(crate) fn refused(why: impl std::fmt::Display) -> Error {
    said(-32600, why)
}

/// `-32603`: it failed here.
pub(crate) fn failed(why: impl std::fmt::Display) -> Error {
    said(-32603, why)
}

/// `-32002`: there is no such session.
pub(crate) fn unknown(session: &schema::SessionId) -> Error {
    let shown: String = session.0.chars().take(64).collect();
    said(-32002, format!("no session `{shown}` is open here"))
}

fn said(code: i32, why: impl std::fmt::Display) -> Error {
    Error::new(code, one_line(&why.to_string()).to_string())
}
