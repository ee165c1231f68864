//! Permission presets, against the public API.

mod begin;
mod between;
mod choose;
mod current;
mod presets;
mod support;
mod wire;
