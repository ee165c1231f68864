//! The tool as an agent runs it, on a real file system, with real processes; what confines them is a fake.

mod answers;
mod background;
mod escalation;
mod fake;
mod refusals;
mod schema;
mod stage;

/// The test binary is its own helper.
#[ctor::ctor]
fn helper() {
    if let Some(code) = subprocess::helper::run_if_asked() {
        std::process::exit(code);
    }
}
