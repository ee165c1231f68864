//! What holds for every file and every crate.

use std::fs;
use std::path::Path;

use crate::report;
use crate::workspace::Workspace;

/// The longest a source file may be, in lines.
const LONGEST: usize = 600;

/// Pages that a repository has.
const PAGES: [&str; 3] = ["README.md", "CHANGELOG.md", "LICENSE"];

/// Words that say that something is not done. In two parts, so that this file does not say so of itself.
const UNFINISHED: [&str; 3] = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("FIX", "ME")];

/// Where only one machine keeps things.
const PLACES: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Where packages come from is for a machine to configure, not for the repository.
const REGISTRIES: [&str; 7] = [
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("crates.io", "-index"),
    concat!("registry", "+http"),
    concat!("sparse", "+http"),
    concat!("replace", "-with"),
    concat!("registry.", "npmjs"),
];

/// The one source that the lock file may name; cargo writes it whatever mirror is used.
const CANONICAL: &str = concat!("source = \"registry", "+https://", "github.com/rust-lang/", "crates.io", "-index\"");

pub(crate) fn run(workspace: &Workspace) -> anyhow::Result<()> {
    let mut complaints = Vec::new();
    let files = workspace.files()?;
    for file in &files {
        // What is no text is no source.
        if let Ok(text) = fs::read_to_string(workspace.root.join(file)) {
            complaints.extend(faults(file, &text).into_iter().map(|fault| format!("{}{fault}", file.display())));
        }
    }
    for package in workspace.packages.iter().filter(|package| package.family().is_some()) {
        if let Some(lib) = &package.lib {
            let text = fs::read_to_string(workspace.root.join(lib))?;
            complaints.extend(boundary(&text).map(|fault| format!("{}: {fault}", lib.display())));
        }
    }
    let missing = PAGES.iter().filter(|page| !workspace.root.join(page).is_file());
    complaints.extend(missing.map(|page| format!("there is no {page}")));
    report("house", &complaints, &format!("{} files", files.len()))
}

/// What is wrong with a file, each beginning with where.
fn faults(file: &Path, text: &str) -> Vec<String> {
    if file == Path::new("Cargo.lock") {
        let foreign = |line: &&str| line.starts_with("source = ") && *line != CANONICAL;
        return numbered(text).filter(|(_, line)| foreign(line)).map(|(at, line)| format!(":{at}: {line}")).collect();
    }
    let mut wrong = Vec::new();
    let length = text.lines().count();
    let is_source = file.extension().is_some_and(|extension| extension == "rs" || extension == "sh");
    if is_source && length > LONGEST {
        wrong.push(format!(": {length} lines; a source file has one subject and at most {LONGEST}"));
    }
    for (at, line) in numbered(text) {
        wrong.extend(
            UNFINISHED.iter().filter(|word| line.contains(**word)).map(|word| format!(":{at}: unfinished: {word}")),
        );
        wrong.extend(
            PLACES
                .iter()
                .filter(|place| is_in(place, line))
                .map(|place| format!(":{at}: a path of one machine: {place}")),
        );
        wrong.extend(
            REGISTRIES
                .iter()
                .filter(|host| line.contains(**host))
                .map(|host| format!(":{at}: names a registry: {host}")),
        );
    }
    wrong
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line))
}

/// Whether a line has an absolute path in this place: the same letters further inside a path or a URL are no such thing.
fn is_in(place: &str, line: &str) -> bool {
    let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~}*)".contains(c));
    line.match_indices(place).any(|(at, _)| begins(at))
}

/// What the opening of a library does not say.
fn boundary(lib: &str) -> Option<String> {
    let opening: Vec<&str> = lib.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let says = |what: &str| opening.iter().any(|line| line.contains(what));
    let unsaid: Vec<&str> = ["*Owns:*", "*Never:*"].into_iter().filter(|what| !says(what)).collect();
    (!unsaid.is_empty())
        .then(|| format!("the library does not open with `//!` lines that say {}", unsaid.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str, expected: &[&str]) {
        let found = faults(Path::new(file), text);
        assert_eq!(found.len(), expected.len(), "{text}: {found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found}\nshould say: {expected}");
        }
    }

    #[test]
    fn a_source_file_is_short_and_done() {
        check("a.rs", &"x\n".repeat(600), &[]);
        check("a.rs", &"x\n".repeat(601), &["601 lines"]);
        check("a.snap", &"x\n".repeat(601), &[]);
        for word in UNFINISHED {
            check("a.rs", &format!("fn x() {{}}\n    {word}"), &[":2: unfinished"]);
        }
    }

    #[test]
    fn no_file_names_one_machine() {
        for place in PLACES {
            check("a.md", &format!("see `{place}x`"), &["a path of one machine"]);
            check("a.md", &format!("{place}x"), &["a path of one machine"]);
            check("a.md", &format!("see docs{place}x"), &[]);
        }
        check("a.md", "a homework, a network, a root", &[]);
    }

    #[test]
    fn no_file_names_a_registry_and_the_lock_file_only_its_own() {
        for host in REGISTRIES {
            check("a.toml", &format!("x = \"{host}\""), &["names a registry"]);
        }
        check("Cargo.lock", &format!("[[package]]\nname = \"x\"\n{CANONICAL}\n"), &[]);
        check("Cargo.lock", "[[package]]\nsource = \"git://example.org\"\n", &[":2: source"]);
    }

    #[test]
    fn a_library_opens_with_its_boundary() {
        assert_eq!(boundary("//! X.\n//!\n//! *Owns:* a.\n//! *Never:* b.\n"), None);
        assert!(boundary("//! X.\n//! *Owns:* a.\n").unwrap().contains("*Never:*"));
        assert!(boundary("use x;\n//! *Owns:* a.\n//! *Never:* b.\n").unwrap().contains("*Owns:* and *Never:*"));
    }
}
