//! The loop, over scripted models.

mod cancelling;
mod chains;
mod durable;
mod ends;
mod facts;
mod headers;
mod live;
mod model;
mod panics;
mod steering;
mod support;
mod turns;
mod valid;
