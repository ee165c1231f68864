//! A result by a schema: the child gets a tool to hand it in, and the first one that fits ends its turn.

mod capture;
mod schema;

pub use capture::RESULT_TOOL;
pub(crate) use capture::{offer, structured_in};
pub use schema::{OutputSchema, SchemaError};
