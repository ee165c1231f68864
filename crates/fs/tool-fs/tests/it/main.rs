//! The tools as an agent runs them, on a real file system.

mod escalation;
mod files;
mod hostile;
mod schema;
mod script;
mod search;
mod stage;
