//! Who may depend on whom.

use std::fs;

use anyhow::{Context, ensure};

use crate::workspace::{Package, Workspace};
use crate::{family, picture, report};

/// What to do about the picture.
#[derive(Clone, Copy)]
pub(crate) enum Picture {
    /// Complain if it is not what would be drawn now.
    Check,
    /// Draw it.
    Write,
}

/// Those that fill a seam. None may depend on another: an app picks them one by one.
const PROVIDERS: &[&str] = &[
    "fs-sandbox",
    "llm-genai",
    "llm-replay",
    "llm-script",
    "sandbox-linux",
    "session-jsonl",
    "subagent-acp",
    "subagent-fork",
    "subagent-spawn",
];

/// Crates that only some may depend on: what moves fast, is heavy, or would bend the design if it spread.
const KEPT_APART: &[(&str, &[&str])] = &[
    ("agent-loop", &["bundle"]),
    ("agent-client-protocol", &["acp", "subagent-acp"]),
    ("genai", &["llm-genai"]),
    ("ratatui", &["tui"]),
    ("crossterm", &["tui"]),
    ("landlock", &["sandbox-linux"]),
    ("seccompiler", &["sandbox-linux"]),
];

pub(crate) fn run(workspace: &Workspace, picture: Picture) -> anyhow::Result<()> {
    let mut complaints = complaints(&workspace.packages);
    complaints.extend(family::complaints(workspace));
    let page = workspace.root.join("crates/README.md");
    let text = fs::read_to_string(&page).context("reading crates/README.md")?;
    let redrawn = picture::redraw(&text, &workspace.packages).context("crates/README.md")?;
    match picture {
        Picture::Write => fs::write(&page, &redrawn).context("writing crates/README.md")?,
        Picture::Check if text != redrawn => {
            complaints.push("the picture in crates/README.md is stale: run `cargo xtask graph --write`".to_owned());
        }
        Picture::Check => {}
    }
    let crates = workspace.packages.iter().filter(|package| package.family().is_some()).count();
    ensure!(crates > 0, "no package is under crates/");
    report("graph", &complaints, &format!("{crates} crates, every dependency downwards"))
}

/// What is wrong with the packages and their dependencies.
fn complaints(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(|package| misplaced(package).into_iter().chain(misdirected(package, packages))).collect()
}

fn misplaced(package: &Package) -> Vec<String> {
    let Package { name, folder, .. } = package;
    let mut wrong = Vec::new();
    if package.floor.is_none() {
        wrong.push(format!("`{name}` declares no floor: add `floor = N` under `[package.metadata.tether]`"));
    }
    if folder.starts_with("crates/") && package.family().is_none() {
        wrong.push(format!("`{name}` is in {folder}: a crate belongs in crates/FAMILY/CRATE"));
    }
    if !folder.is_empty() && folder.rsplit('/').next() != Some(name) {
        wrong.push(format!("`{name}` is in {folder}: the folder of a crate has the crate's name"));
    }
    wrong
}

fn misdirected(package: &Package, packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for need in &package.needs {
        if let Some(below) = packages.iter().find(|other| other.name == *need)
            && let (Some(high), Some(low)) = (package.floor, below.floor)
            && low >= high
        {
            wrong.push(format!(
                "`{}` (floor {high}) depends on `{need}` (floor {low}): dependencies go strictly downwards",
                package.name
            ));
        }
        if is_provider(&package.name) && is_provider(need) {
            wrong.push(format!("`{}` depends on `{need}`: a provider depends on no provider", package.name));
        }
        if let Some((_, friends)) = KEPT_APART.iter().find(|(apart, _)| apart == need)
            && !friends.contains(&package.name.as_str())
            && !(need == "agent-loop" && assembles(package))
        {
            wrong.push(format!("`{}` depends on `{need}`: that is for {} alone", package.name, friends.join(", ")));
        }
    }
    wrong
}

fn is_provider(name: &str) -> bool {
    PROVIDERS.contains(&name)
}

/// Whether it puts a program together, and so may name the loop.
fn assembles(package: &Package) -> bool {
    package.family() == Some("apps") || package.folder.starts_with("examples/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, floor: u32, needs: &[&str]) -> Package {
        Package {
            name: folder.rsplit('/').next().unwrap().to_owned(),
            floor: Some(floor),
            folder: folder.to_owned(),
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            ..Package::default()
        }
    }

    /// The packages beside those of `house`, and what is wrong; nothing if `expected` is empty.
    fn check(more: Vec<Package>, expected: &[&str]) {
        let house = [
            package("crates/core/context", 0, &["tokio"]),
            package("crates/core/llm", 1, &["context", "serde"]),
            package("crates/core/agent-loop", 5, &["llm"]),
            package("crates/model/llm-script", 5, &["llm"]),
        ];
        let found = complaints(&house.into_iter().chain(more).collect::<Vec<_>>());
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}\nshould say: {expected}");
        }
    }

    #[test]
    fn downwards_is_fine() {
        check(vec![], &[]);
        check(vec![package("crates/model/llm-genai", 5, &["llm", "genai"])], &[]);
    }

    #[test]
    fn upwards_and_sideways_are_not() {
        check(vec![package("crates/core/session", 1, &["llm"])], &["`session` (floor 1) depends on `llm` (floor 1)"]);
        check(vec![package("crates/core/early", 0, &["llm"])], &["`early` (floor 0) depends on `llm` (floor 1)"]);
    }

    #[test]
    fn a_provider_depends_on_no_provider() {
        check(vec![package("crates/model/llm-replay", 6, &["llm-script"])], &["a provider depends on no provider"]);
        check(vec![package("crates/ui/tui", 8, &["llm-script"])], &[]);
    }

    #[test]
    fn the_loop_is_for_those_who_assemble() {
        check(vec![package("crates/ui/acp", 8, &["agent-loop"])], &["`acp` depends on `agent-loop`"]);
        check(vec![package("crates/apps/bundle", 9, &["agent-loop"])], &[]);
        check(vec![package("crates/apps/tether", 10, &["agent-loop"])], &[]);
        check(vec![package("examples/agent-spine-demo", 10, &["agent-loop"])], &[]);
    }

    #[test]
    fn a_wire_protocol_stays_in_its_bridge() {
        check(vec![package("crates/ui/acp", 8, &["agent-client-protocol"])], &[]);
        check(vec![package("crates/ui/tui", 8, &["agent-client-protocol"])], &["`agent-client-protocol`"]);
        check(vec![package("crates/apps/tether", 10, &["genai"])], &["that is for llm-genai alone"]);
    }

    #[test]
    fn a_crate_has_a_floor_and_its_place() {
        let homeless = Package { floor: None, ..package("crates/core/jobs", 4, &[]) };
        check(vec![homeless], &["`jobs` declares no floor"]);
        check(vec![package("crates/jobs", 4, &[])], &["a crate belongs in crates/FAMILY/CRATE"]);
        check(vec![package("crates/core/deep/jobs", 4, &[])], &["a crate belongs in crates/FAMILY/CRATE"]);
        let renamed = Package { name: "work".to_owned(), ..package("crates/core/jobs", 4, &[]) };
        check(vec![renamed], &["`work` is in crates/core/jobs: the folder of a crate has the crate's name"]);
    }
}
