//! Running `tether`, whole, as a process: the world around it, its logs, a terminal, signals.

mod layers;
pub(crate) mod logs;
pub(crate) mod process;
mod questions;
mod signals;
pub(crate) mod terminal;
pub(crate) mod world;
