//! Audits of logs in memory: live sessions, wide families, deep lineages.

mod cost;
mod live;
mod world;
