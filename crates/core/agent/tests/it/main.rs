//! Agents, against the public API.

mod cancelling;
mod creating;
mod ending;
mod inbox;
mod rollback;
mod store;
mod support;
