//! The table that every family of crates has in its README.

use std::fs;

use crate::workspace::Workspace;

/// Which families have no table, and which crates are missing from theirs.
pub(crate) fn complaints(workspace: &Workspace) -> Vec<String> {
    let mut families: Vec<&str> = workspace.packages.iter().filter_map(|package| package.family()).collect();
    families.sort_unstable();
    families.dedup();
    let missing = |family: &str| {
        let Ok(page) = fs::read_to_string(workspace.root.join("crates").join(family).join("README.md")) else {
            return vec![format!("crates/{family} has no README.md with a table of its crates")];
        };
        let crates = workspace.packages.iter().filter(|package| package.family() == Some(family));
        let unlisted = crates.filter(|package| !is_listed(&page, &package.name));
        unlisted.map(|package| format!("`{}` is not in the table of crates/{family}/README.md", package.name)).collect()
    };
    families.into_iter().flat_map(missing).collect()
}

/// Whether a row of a table begins with the crate's name.
fn is_listed(page: &str, name: &str) -> bool {
    let cell = format!("`{name}`");
    page.lines()
        .filter_map(|line| line.trim_start().strip_prefix('|')?.split('|').next())
        .any(|first| first.contains(&cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_listed_by_a_row_of_its_own() {
        let page = "Here is `tools`.\n\n| crate | role |\n|---|---|\n| [`llm`](llm) | talks; `agent` uses it |\n";
        assert!(is_listed(page, "llm"));
        assert!(!is_listed(page, "tools"), "named in prose alone");
        assert!(!is_listed(page, "agent"), "named in another's row");
        assert!(!is_listed(page, "ll"));
    }
}
