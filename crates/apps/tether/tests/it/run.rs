//! Running `tether`, whole, as a process: the world around it, its logs, a terminal, signals.

mod background;
mod budgets;
mod layers;
pub(crate) mod logs;
mod presets;
pub(crate) mod process;
mod questions;
mod rows;
mod signals;
pub(crate) mod terminal;
pub(crate) mod world;
