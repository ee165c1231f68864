//! The fence on a real file system: what it lets through, and what it keeps out.

mod attacks;
mod files;
mod paths;
mod plugin;
mod races;
mod world;
