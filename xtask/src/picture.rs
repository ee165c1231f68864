//! The picture of the house: floors, and arrows from each crate to those just below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::Context;

use crate::workspace::Package;

const BEGIN: &str = "<!-- graph: written by `cargo xtask graph --write` -->\n";
const END: &str = "<!-- end of graph -->\n";

/// The page with the picture between its two marks drawn anew.
pub(crate) fn redraw(page: &str, packages: &[Package]) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("has no line {}", BEGIN.trim_end()))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("has no line {}", END.trim_end()))?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", draw(packages)))
}

fn draw(packages: &[Package]) -> String {
    let crates: Vec<&Package> = packages.iter().filter(|package| package.family().is_some()).collect();
    let mut floors: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for package in &crates {
        floors.entry(package.floor.unwrap_or_default()).or_default().push(format!("`{}`", package.name));
    }
    let mut text = String::from("\n| floor | crates |\n|---|---|\n");
    for (floor, names) in &floors {
        writeln!(text, "| {floor} | {} |", names.join(" · ")).expect("writing to a string");
    }
    text.push_str(
        "\nAn arrow points at what a crate depends on; what it also reaches by way of another is left out.\n\n",
    );
    text.push_str("```mermaid\nflowchart TD\n");
    let below = below(&crates);
    for package in &crates {
        let needs = &below[package.name.as_str()];
        let indirect: BTreeSet<&str> = needs.iter().flat_map(|need| reach(need, &below)).collect();
        for need in needs.difference(&indirect) {
            writeln!(text, "  {} --> {need}", package.name).expect("writing to a string");
        }
    }
    text.push_str("```\n\n");
    text
}

type Below<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Our crates that each of our crates depends on. Edges that do not go downwards are for the rules to tell, and left
/// out here, so that no circle can be walked.
fn below<'a>(crates: &[&'a Package]) -> Below<'a> {
    let ours: BTreeMap<&str, &Package> = crates.iter().map(|package| (package.name.as_str(), *package)).collect();
    let needs = |package: &'a Package| {
        let known = package.needs.iter().filter_map(|need| ours.get(need.as_str()));
        known.filter(|need| need.floor < package.floor).map(|need| need.name.as_str()).collect()
    };
    crates.iter().map(|package| (package.name.as_str(), needs(package))).collect()
}

/// Everything under a crate.
fn reach<'a>(name: &str, below: &Below<'a>) -> BTreeSet<&'a str> {
    let direct = &below[name];
    direct.iter().flat_map(|need| reach(need, below)).chain(direct.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, floor: u32, needs: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            floor: Some(floor),
            folder: format!("crates/core/{name}"),
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            ..Package::default()
        }
    }

    #[test]
    fn only_what_is_not_reached_otherwise_gets_an_arrow() {
        let packages = [
            package("a", 0, &["serde"]),
            package("b", 1, &["a"]),
            package("c", 2, &["a", "b"]),
            package("d", 0, &["d"]),
        ];
        let page = format!("# Crates\n{BEGIN}old{END}rest\n");
        let page = redraw(&page, &packages).unwrap();
        assert!(page.starts_with("# Crates\n") && page.ends_with("rest\n"), "{page}");
        assert!(page.contains("| 0 | `a` · `d` |\n| 1 | `b` |\n| 2 | `c` |\n"), "{page}");
        assert!(page.contains("flowchart TD\n  b --> a\n  c --> b\n```"), "{page}");
        assert_eq!(redraw(&page, &packages).unwrap(), page, "drawing twice changes nothing");
    }

    #[test]
    fn a_page_without_marks_is_an_error() {
        assert!(redraw("# Crates\n", &[]).is_err());
        assert!(redraw(BEGIN, &[]).is_err());
    }
}
