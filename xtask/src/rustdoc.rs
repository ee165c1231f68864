//! Makes the error code of a `compile_fail,E0xxx` doc test count.
//!
//! A stable `rustdoc` ignores the code, so that a wrong program may fail for a wrong reason. It checks the code when
//! `RUSTC_BOOTSTRAP=1` is set; but set for all of cargo, that rebuilds every dependency whose build script asks for it.
//! So this program poses as `rustdoc`, sets the variable for that one program, and nothing is built twice.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// Set in the environment of a `cargo test` whose doc tests are to be strict. Holds the `rustdoc` to run.
const POSING: &str = "XTASK_POSES_AS_RUSTDOC";

/// Makes the doc tests of this `cargo test` strict.
pub(crate) fn strict(command: &mut Command) -> anyhow::Result<&mut Command> {
    let rustdoc = std::env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    Ok(command.env(POSING, rustdoc).env("RUSTDOC", std::env::current_exe()?))
}

/// Whether cargo started us in place of `rustdoc`.
pub(crate) fn is_wanted() -> bool {
    rustdoc().is_some()
}

/// Does what `rustdoc` does.
pub(crate) fn run() -> ExitCode {
    let rustdoc = rustdoc().unwrap_or_else(|| "rustdoc".into());
    let ran = Command::new(&rustdoc).args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1").status();
    match ran {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: `{}` could not be started: {error}", rustdoc.display());
            ExitCode::FAILURE
        }
    }
}

fn rustdoc() -> Option<OsString> {
    std::env::var_os(POSING)
}
