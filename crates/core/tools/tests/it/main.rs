//! Tools, against the public API.

mod arguments;
mod cancelling;
mod filters;
mod layers;
mod limits;
mod registry;
mod running;
mod schema;
mod support;
