//! The program that commands are started and confined by.

use std::path::PathBuf;

/// Where the helper of commands is: a program whose `main` begins with [`Helper::begin`]. An app that has none runs no
/// commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Helper(PathBuf);

impl Helper {
    /// The first thing in `main`, before there is any thread. This program is its own helper from then on: where it was
    /// started as one, that is all it does, and this does not return.
    pub fn begin() -> Self {
        if let Some(code) = subprocess::helper::run_if_asked().or_else(sandbox_linux::helper::run_if_asked) {
            std::process::exit(code);
        }
        Self("/proc/self/exe".into())
    }

    /// Another program, whose `main` begins so.
    pub fn program(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The program.
    pub fn path(&self) -> PathBuf {
        self.0.clone()
    }
}
