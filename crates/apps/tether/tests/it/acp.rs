//! `tether acp`, over the wire: what a client sends, what it is sent, and what the disk and the process table say of it.

mod cancel;
mod client;
mod ends;
mod flood;
mod frames;
mod outside;
mod permission;
pub(crate) mod recorded;
mod sessions;
mod settings;
mod show;
mod slash;
mod turn;
