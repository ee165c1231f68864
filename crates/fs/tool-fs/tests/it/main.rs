//! The tools as an agent runs them, on a real file system.

mod escalation;
mod files;
mod schema;
mod stage;
