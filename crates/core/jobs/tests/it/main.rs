//! What an agent has going on in the background, and what it is told of it.

mod ends;
mod finished;
mod owners;
mod races;
mod support;
mod tells;
