//! Approval, against the public API.

mod asking;
mod audit;
mod cancelling;
mod children;
mod escalating;
mod in_a_tool;
mod leaving;
mod meanwhile;
mod outcomes;
mod support;
mod wire;
