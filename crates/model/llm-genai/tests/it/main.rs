//! What goes over the wire, and what comes of it: each test is the answers of a server and what the adapter makes of
//! them.

mod anthropic;
mod failures;
mod openai;
mod others;
mod requests;
mod secrets;
mod server;
mod world;
