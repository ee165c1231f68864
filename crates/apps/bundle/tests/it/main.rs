//! The spine under the worst that layers, owners, models, providers and crashes do to it.

mod cancelling;
mod delegating;
mod logs;
mod machine;
mod models;
mod publishing;
mod support;
mod ten_thousand;
