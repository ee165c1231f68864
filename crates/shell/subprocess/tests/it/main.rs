//! Process trees, seen from the process table.

mod broken;
mod death;
mod ends;
mod harness;
mod kills;
mod limits;
mod passes;
mod pipes;
mod support;

/// This executable is its own helper, and the harness that some tests kill.
#[ctor::ctor]
fn before_main() {
    if let Some(code) = subprocess::helper::run_if_asked().or_else(harness::run_if_asked) {
        std::process::exit(code);
    }
}
