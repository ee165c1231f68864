//! Scenarios and the snapshots that pin what they do.

use std::path::Path;

use anyhow::ensure;

use crate::workspace::Workspace;
use crate::{process, report};

/// The package whose tests, in a module of that name, run every scenario.
const RUNNER: (&str, &str) = ("tether", "scenarios");

/// Every scenario says what it is and is pinned; nothing waits to be reviewed.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<()> {
    let files = workspace.files()?;
    let paths: Vec<&str> = files.iter().filter_map(|path| path.to_str()).collect();
    let folders = folders(&workspace.root.join("snapshots"))?;
    let mut complaints = complaints(&folders, &paths);
    if folders.is_empty() && workspace.package(RUNNER.0).is_some() {
        complaints.push(format!("`{}` is there to run scenarios, and snapshots/ has none", RUNNER.0));
    }
    report("snapshots", &complaints, &format!("{} scenarios", folders.len()))
}

/// Runs every scenario and takes what it does now for right.
pub(crate) fn update(workspace: &Workspace) -> anyhow::Result<()> {
    let (package, module) = RUNNER;
    ensure!(workspace.package(package).is_some(), "no package named `{package}` runs the scenarios");
    let mut cargo = process::cargo(&workspace.root);
    process::run(cargo.args(["test", "-p", package, module]).env("INSTA_UPDATE", "always"))?;
    check(workspace)
}

fn complaints(folders: &[String], files: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    for folder in folders {
        let within = format!("snapshots/{folder}/");
        let mut its = files.iter().filter_map(|file| file.strip_prefix(&within));
        if !its.clone().any(|file| file == "scenario.toml") {
            wrong.push(format!("{within} has no scenario.toml"));
        }
        if !its.any(|file| file.ends_with(".snap")) {
            wrong.push(format!("{within} pins nothing: it has no .snap"));
        }
    }
    let stray =
        |file: &&&str| file.strip_prefix("snapshots/").is_some_and(|rest| !rest.contains('/') && rest != "README.md");
    wrong.extend(files.iter().filter(stray).map(|file| format!("{file} is in no scenario's folder")));
    let pending = files.iter().filter(|file| file.ends_with(".snap.new") || file.ends_with(".pending-snap"));
    wrong.extend(pending.map(|file| format!("{file} waits to be reviewed: accept it or delete it")));
    wrong
}

fn folders(snapshots: &Path) -> anyhow::Result<Vec<String>> {
    if !snapshots.exists() {
        return Ok(Vec::new());
    }
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(snapshots)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    folders.sort();
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], expected: &[&str]) {
        let found = complaints(&["spawn".to_owned()], files);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}\nshould say: {expected}");
        }
    }

    #[test]
    fn a_scenario_says_what_it_is_and_is_pinned() {
        check(&["snapshots/README.md", "snapshots/spawn/scenario.toml", "snapshots/spawn/frames.snap"], &[]);
        check(&["snapshots/spawn/frames.snap"], &["has no scenario.toml"]);
        check(&["snapshots/spawn/scenario.toml", "snapshots/fork/frames.snap"], &["pins nothing"]);
        check(&[], &["has no scenario.toml", "pins nothing"]);
    }

    #[test]
    fn nothing_waits_and_nothing_strays() {
        let good = ["snapshots/spawn/scenario.toml", "snapshots/spawn/frames.snap"];
        check(&[good[0], good[1], "snapshots/spawn/log.snap.new"], &["waits to be reviewed"]);
        check(&[good[0], good[1], "crates/core/llm/src/.lib.rs.pending-snap"], &["waits to be reviewed"]);
        check(&[good[0], good[1], "snapshots/lost.snap"], &["is in no scenario's folder"]);
    }
}
