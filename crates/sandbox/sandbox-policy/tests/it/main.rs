//! Which mode a session runs under, against the public API.

mod effective;
mod inherited;
mod support;
mod told;
mod wire;
