//! Approval, against the public API.

mod asking;
mod audit;
mod cancelling;
mod children;
mod escalating;
mod support;
mod wire;
