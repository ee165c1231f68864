//! What the adapters answer, request by request, through their public seam.

mod file;
mod offline;
mod script;
mod talk;
