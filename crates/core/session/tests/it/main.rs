//! The session, against its public API.

mod backing;
mod decode;
mod delegation;
mod fork;
mod inbox;
mod model;
mod observe;
mod projection;
mod recovery;
mod support;
mod wire;
