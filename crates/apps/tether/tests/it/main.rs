//! The `tether` command, run as its users run it.

mod acp;
mod bad_input;
mod commands;
mod config;
mod crash;
mod json;
mod models;
mod read;
mod run;
mod scenarios;
mod temporary;
