//! Agents in processes of their own, driven over the whole way: a stub that is this executable, real pipes, the real
//! sandbox; and what is believed is the disk, the process table and the log.

mod confined;
mod contract;
mod ends;
mod environment;
mod floods;
mod permissions;
mod starts;
mod stub;
mod trees;
mod world;

/// This executable is its own helper, the agent, and the harness that some tests kill.
#[ctor::ctor]
fn before_main() {
    let helper = || subprocess::helper::run_if_asked().or_else(sandbox_linux::helper::run_if_asked);
    if let Some(code) = helper().or_else(stub::run_if_asked).or_else(trees::run_if_asked) {
        std::process::exit(code);
    }
}
