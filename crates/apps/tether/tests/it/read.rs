//! The commands that read logs, run as they are on logs that the real crates wrote.

mod audit;
mod explain;
mod list;
mod show;
mod tree;
mod world;
