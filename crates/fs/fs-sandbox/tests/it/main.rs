//! The fence on a real file system: what it lets through, and what it keeps out.

mod attacks;
mod files;
mod git;
mod git_elsewhere;
mod held;
mod leads_to;
mod paths;
mod plugin;
mod private;
mod races;
mod world;
