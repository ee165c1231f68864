//! Changing what decides policy in every way that `cargo mutants` knows, and seeing a test fail each time.
//!
//! Each change is made in a copy of the project. What may survive, and why, is said in `.cargo/mutants.toml`.

use std::fs;

use anyhow::{Context, ensure};

use crate::workspace::Workspace;
use crate::{process, report};

/// The crates that decide policy, and those whose tests prove it.
const CRATES: [(&str, &[&str]); 7] = [
    ("sandbox-policy", &["sandbox-policy"]),
    ("permission", &["permission"]),
    ("user-approval", &["user-approval"]),
    ("session", &["session"]),
    ("fs-sandbox", &["fs-sandbox"]),
    ("subagent-inprocess", &COMPOSED),
    ("subagent", &COMPOSED),
];

/// Where it is proven what children in this process have in common.
const COMPOSED: [&str; 4] = ["subagent", "subagent-spawn", "subagent-fork", "tool-subagent"];

/// Tests the changes of one crate, or of all; `rest` goes to `cargo mutants`.
pub(crate) fn run(workspace: &Workspace, wanted: Option<&str>, rest: &[&str]) -> anyhow::Result<()> {
    let chosen: Vec<_> = CRATES.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == *name)).collect();
    let known = CRATES.map(|(name, _)| name).join(", ");
    ensure!(!chosen.is_empty(), "no such crate among those that decide policy: there are {known}");
    let reports = workspace.root.join("target/mutants");
    let mut complaints = Vec::new();
    for (name, provers) in &chosen {
        let to = reports.join(name);
        fs::create_dir_all(&to).with_context(|| format!("{} could not be made", to.display()))?;
        let mut cargo = process::cargo(&workspace.root);
        cargo.args(["mutants", "--package", name, "--test-package", &provers.join(",")]).args(rest);
        cargo.arg("--output").arg(&to).env("CARGO_TARGET_DIR", reports.join("build"));
        if let Err(error) = process::run(&mut cargo) {
            complaints.push(format!("{name}: {error}; see {}", to.join("mutants.out/missed.txt").display()));
        }
    }
    report("mutants", &complaints, &format!("{} crates, no change went unnoticed", chosen.len()))
}
