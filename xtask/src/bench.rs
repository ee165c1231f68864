//! Running every benchmark of the workspace.

use anyhow::ensure;

use crate::process;
use crate::workspace::Workspace;

/// Runs the bench targets, and no unit tests beside them: those would not understand a benchmark's arguments.
pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> anyhow::Result<()> {
    let mut cargo = process::cargo(&workspace.root);
    cargo.arg("bench");
    let with_benches = workspace.packages.iter().filter(|package| !package.benches.is_empty());
    for package in with_benches.clone() {
        cargo.args(["-p", &package.name]);
        for bench in &package.benches {
            cargo.args(["--bench", bench]);
        }
    }
    ensure!(with_benches.count() > 0, "no package has a bench target");
    process::run(cargo.args(args))
}
