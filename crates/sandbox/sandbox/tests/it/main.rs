//! The contract finds what is wrong with a provider.

mod broken;
mod naked;

/// This executable is the suite's probe.
#[ctor::ctor]
fn before_main() {
    if let Some(code) = sandbox::testing::run_if_asked() {
        std::process::exit(code);
    }
}
