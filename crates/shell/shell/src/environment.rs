//! The environment of every command.

use std::path::Path;

use subprocess::Environment;

/// Nobody is at a terminal: nothing pages, colours, or asks.
const FIXED: [(&str, &str); 7] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("TERM", "dumb"),
];

/// What a command whose temporary directory is `temp` sees.
pub(crate) fn environment(base: &Environment, temp: &Path) -> Environment {
    let fixed = FIXED.iter().fold(base.clone(), |env, (name, value)| env.with(*name, *value));
    fixed.with("TMPDIR", temp)
}
