//! What people get wrong, what files hold that should not, what a machine refuses: told in one line, with nothing
//! written where nothing should be.

mod arguments;
mod configuration;
mod disk;
mod logs;
mod output;
mod prompt;
mod tools;

use std::process::Command;

use crate::run::process::Ran;
use crate::run::world::World;

/// Says that this machine has no way to try something.
#[expect(clippy::print_stderr, reason = "whoever reads the tests' output should know")]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

/// Runs a command that is to be refused, and holds it to that: one line with all of this in it, and nothing kept,
/// written or changed.
#[track_caller]
fn check_refused(world: &World, command: Command, stdin: &[u8], status: i32, parts: &[&str]) -> String {
    let before = world.files("");
    let told = Ran::fed(command, stdin).refused(status);
    for part in parts {
        assert!(told.contains(part), "{told}\nshould say: {part}");
    }
    let (before, after): (Vec<_>, Vec<_>) = (before.into_iter().collect(), world.files("").into_iter().collect());
    // Not even a directory for sessions, unless there is one.
    assert_eq!(before, after, "{told}");
    told
}
