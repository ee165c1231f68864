//! The other side: the process between the harness and a command.
//!
//! A helper has one thread. [`Control::open`] makes a helper of a process; [`Control::execute`] starts the command,
//! [`Control::wait`] waits for it while the lifeline holds, [`Control::end_all`] ends what is left. [`run_if_asked`] is the
//! helper of commands that are not confined; one that confines is made of the same parts.

mod control;
mod execute;
mod guard;
pub(crate) mod tree;

use std::ffi::OsStr;

pub use control::{Control, NoHelper, Waited};
pub(crate) use guard::Plan;
pub use tree::Left;

/// The first argument of a helper that holds a tree and nothing else.
pub const GUARD: &str = "__tether-guard";

/// The longest plan that a helper reads, in bytes. A command line that the system takes is shorter.
pub const MAX_PLAN: usize = 4 * 1024 * 1024;

/// The longest report that the harness reads, in bytes with the end of its line.
pub const MAX_REPORT: usize = 16 * 1024;

/// Where a helper finds its lifeline.
pub(crate) const LIFELINE: i32 = 3;

/// Where a helper finds the way back.
pub(crate) const REPORTS: i32 = 4;

/// Is the helper, if this process was started as one, and says with which code to exit. The first thing in `main`: it
/// needs a process with one thread.
pub fn run_if_asked() -> Option<i32> {
    asked(GUARD).then(guard::run)
}

/// Whether this process was started with `name` as its first argument.
pub fn asked(name: &str) -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == OsStr::new(name))
}
