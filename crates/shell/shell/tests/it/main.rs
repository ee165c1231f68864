//! Command lines, run for real; what confines them is a fake that is stricter than a sandbox.

mod begins;
mod confines;
mod ends;
mod nobody;
mod sees;
mod world;

/// The test binary is its own helper.
#[ctor::ctor]
fn helper() {
    if let Some(code) = subprocess::helper::run_if_asked() {
        std::process::exit(code);
    }
}
