//! Commands under the sandbox, seen from outside: the disk, the process table, the other end of a socket.

mod attacks;
mod concurrency;
mod contract;
mod ends;
mod enforcement;
mod evidence;
mod full;
mod ground;
mod led;
mod neutral;
mod places;
mod runs;
mod shared;
mod tools;
mod tree;
mod who;
mod yard;

/// This executable is its own helper, and the attackers' program.
#[ctor::ctor]
fn before_main() {
    who::step_down_if_asked();
    let helper = subprocess::helper::run_if_asked()
        .or_else(sandbox_linux::helper::run_if_asked)
        .or_else(sandbox::testing::run_if_asked);
    if let Some(code) = helper.or_else(attacks::programs::run_if_asked) {
        std::process::exit(code);
    }
}
