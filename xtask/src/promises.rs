//! Which test proves which promise.
//!
//! A promise has an id such as `D-07`. A test proves it if a comment that begins with the id stands above the test, or
//! inside it. Doc tests count, and so do the functions of a contract suite (a `testing` module), which providers run.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::workspace::Workspace;

/// Every promise there is.
const KNOWN: [RangeInclusive<u32>; 5] = [1..=12, 20..=32, 40..=52, 60..=66, 70..=72];

/// Those that `--require` wants a test for.
const REQUIRED: [RangeInclusive<u32>; 5] = [1..=12, 20..=32, 52..=52, 60..=66, 70..=72];

/// The id of a promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Promise(u32);

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "D-{:02}", self.0)
    }
}

/// Every promise there is, in order.
pub(crate) fn known() -> impl Iterator<Item = Promise> {
    KNOWN.into_iter().flatten().map(Promise)
}

/// A test that says it proves something.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Proof {
    file: String,
    line: usize,
    test: String,
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} {}", self.file, self.line, self.test)
    }
}

/// The tests of each promise.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<Promise, Vec<Proof>>);

impl Table {
    /// Reads every Rust file of the crates and the examples.
    pub(crate) fn of(workspace: &Workspace) -> anyhow::Result<Self> {
        let mut table = Self::default();
        for file in workspace.files()? {
            let ours = file.starts_with("crates") || file.starts_with("examples");
            if ours && file.extension().is_some_and(|extension| extension == "rs") {
                table.read(&file, &fs::read_to_string(workspace.root.join(&file))?);
            }
        }
        Ok(table)
    }

    /// How many promises have a test.
    pub(crate) fn proven(&self) -> usize {
        known().filter(|promise| self.0.contains_key(promise)).count()
    }

    /// Complaints about tests that prove what was never promised.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let made_up = self.0.iter().filter(|(promise, _)| !known().any(|known| known == **promise));
        made_up
            .flat_map(|(promise, proofs)| proofs.iter().map(move |proof| format!("{proof}: there is no {promise}")))
            .collect()
    }

    /// Complaints about promises that are due and have no test.
    pub(crate) fn unproven(&self) -> Vec<String> {
        let due = REQUIRED.into_iter().flatten().map(Promise);
        due.filter(|promise| !self.0.contains_key(promise)).map(|promise| format!("no test proves {promise}")).collect()
    }

    fn read(&mut self, file: &Path, text: &str) {
        let mut scan = Scan::new(file);
        for (at, line) in text.lines().enumerate() {
            scan.line(at + 1, line, &mut self.0);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for promise in known() {
            match self.0.get(&promise).map(Vec::as_slice).unwrap_or_default() {
                [] => writeln!(f, "{promise}  -")?,
                proofs => proofs.iter().try_for_each(|proof| writeln!(f, "{promise}  {proof}"))?,
            }
        }
        Ok(())
    }
}

/// Reads one file, line by line. It relies on what the formatter guarantees: a function ends with a brace as far in as
/// its first line.
struct Scan {
    file: String,
    is_contract: bool,
    /// Named by the comments just above.
    named: Vec<Promise>,
    /// An attribute just above makes it a test.
    is_test: bool,
    /// Brackets of an attribute that are still open.
    open: usize,
    within: Option<Within>,
}

/// The test whose body is being read.
struct Within {
    indent: usize,
    proof: Proof,
}

impl Scan {
    fn new(file: &Path) -> Self {
        let is_contract = file.iter().any(|part| part == "testing" || part == "testing.rs");
        let file = file.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        Self { file, is_contract, named: Vec::new(), is_test: false, open: 0, within: None }
    }

    fn line(&mut self, at: usize, line: &str, found: &mut BTreeMap<Promise, Vec<Proof>>) {
        let (text, indent) = (line.trim(), line.len() - line.trim_start().len());
        if self.open > 0 {
            self.open = self.open.saturating_add(text.matches('[').count()).saturating_sub(text.matches(']').count());
        } else if text.starts_with("///") || text.starts_with("//!") {
            if text.contains("```") {
                let proof = Proof { file: self.file.clone(), line: at, test: "(doc test)".to_owned() };
                self.named.drain(..).for_each(|promise| found.entry(promise).or_default().push(proof.clone()));
            }
        } else if let Some(comment) = text.strip_prefix("//") {
            match &self.within {
                Some(within) => {
                    ids(comment).into_iter().for_each(|id| found.entry(id).or_default().push(within.proof.clone()));
                }
                None => self.named.extend(ids(comment)),
            }
        } else if let Some(attribute) = text.strip_prefix("#[") {
            self.is_test |= is_test(attribute);
            self.open = text.matches('[').count().saturating_sub(text.matches(']').count());
        } else if let Some(within) = &self.within {
            if text == "}" && indent == within.indent {
                self.within = None;
            }
        } else {
            let named = std::mem::take(&mut self.named);
            let is_test = std::mem::take(&mut self.is_test) || self.is_contract;
            if let (true, Some(test)) = (is_test, function(text)) {
                let proof = Proof { file: self.file.clone(), line: at, test: test.to_owned() };
                named.into_iter().for_each(|id| found.entry(id).or_default().push(proof.clone()));
                self.within = (!text.ends_with('}')).then_some(Within { indent, proof });
            }
        }
    }
}

/// The name, if the line begins a function.
fn function(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let qualifies = |word: &str| matches!(word, "pub" | "pub(crate)" | "pub(super)" | "async" | "const");
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (before.split_whitespace().all(qualifies) && !name.is_empty()).then_some(name)
}

/// Whether an attribute, without its `#[`, makes a test: `test`, `tokio::test(...)`.
fn is_test(attribute: &str) -> bool {
    let path = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
    path.rsplit("::").next() == Some("test")
}

/// The ids that a comment begins with: `D-07`, `D-07, D-09`, `D-01…D-12: why`.
fn ids(comment: &str) -> Vec<Promise> {
    let mut ids = Vec::new();
    for word in comment.split([',', ' ']).filter(|word| !word.is_empty()) {
        let word = word.trim_end_matches([':', '.', ';']);
        let range = word.split_once('…').or_else(|| word.split_once(".."));
        let (first, last) = match range {
            Some((first, last)) => (id(first), id(last)),
            None => (id(word), id(word)),
        };
        let (Some(first), Some(last)) = (first, last) else { break };
        match range {
            Some(_) => ids.extend(known().filter(|known| (first..=last).contains(known))),
            None => ids.push(first),
        }
    }
    ids
}

fn id(word: &str) -> Option<Promise> {
    let digits = word.strip_prefix("D-").filter(|digits| digits.len() == 2)?;
    digits.parse().ok().map(Promise)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table of a file says, a line a proof.
    fn check(file: &str, text: &str, expected: &[&str]) {
        let mut table = Table::default();
        table.read(Path::new(file), text);
        let row = |(id, proofs): (&Promise, &Vec<Proof>)| {
            proofs.iter().map(|proof| format!("{id} {} {}", proof.line, proof.test)).collect::<Vec<_>>()
        };
        assert_eq!(table.0.iter().flat_map(row).collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn an_id_above_a_test_counts() {
        check("a.rs", "// D-07\n#[test]\nfn later() {\n}\n", &["D-07 3 later"]);
        check("a.rs", "#[test]\n// D-07: why\nfn later() {}\n", &["D-07 3 later"]);
        check("a.rs", "// D-07, D-09 both\n#[test]\nfn x() {\n}\n", &["D-07 3 x", "D-09 3 x"]);
        check("a.rs", "// D-22…D-24\n#[test]\nfn x() {\n}\n", &["D-22 3 x", "D-23 3 x", "D-24 3 x"]);
        let wide = "// D-31\n#[tokio::test(\n    start_paused = true,\n    flavor = [1]\n)]\nasync fn wide() {\n}\n";
        check("a.rs", wide, &["D-31 6 wide"]);
        check("a.rs", "    // D-08\n    #[test]\n    fn inner() {\n    }\n", &["D-08 3 inner"]);
    }

    #[test]
    fn an_id_inside_a_test_counts_and_one_after_it_does_not() {
        let text = "#[test]\nfn both() {\n    {\n        // D-01\n    }\n    // D-02\n}\n// D-03\nfn helper() {}\n";
        check("a.rs", text, &["D-01 2 both", "D-02 2 both"]);
    }

    #[test]
    fn an_id_elsewhere_does_not_count() {
        check("a.rs", "// D-07\nfn enforce() {\n    // D-08\n}\n", &[]);
        check("a.rs", "// D-07\nconst X: u32 = 1;\n#[test]\nfn other() {\n}\n", &[]);
        check("a.rs", "// See D-07.\n#[test]\nfn other() {\n}\n", &[]);
        check("a.rs", "/// D-07\n#[test]\nfn other() {\n}\n", &[]);
        check("a.rs", "// D-07\n#[cfg(test)]\nfn helper() {\n}\n", &[]);
    }

    #[test]
    fn doc_tests_and_contract_suites_count() {
        check(
            "src/new.rs",
            "// D-12\n/// ```compile_fail,E0382\n/// x\n/// ```\npub fn new() {}\n",
            &["D-12 2 (doc test)"],
        );
        check("src/testing.rs", "// D-20\npub async fn names_are_unique() {\n}\n", &["D-20 2 names_are_unique"]);
        check("src/testing/names.rs", "// D-20\npub async fn unique() {\n}\n", &["D-20 2 unique"]);
    }

    #[test]
    fn what_is_made_up_or_unproven_is_told() {
        let mut table = Table::default();
        table.read(Path::new("a.rs"), "// D-01…D-12, D-99\n#[test]\nfn x() {\n}\n");
        assert_eq!(table.unknown(), ["a.rs:3 x: there is no D-99"]);
        let unproven = table.unproven();
        assert!(unproven.contains(&"no test proves D-20".to_owned()), "{unproven:?}");
        assert!(!unproven.contains(&"no test proves D-07".to_owned()), "{unproven:?}");
        assert!(!unproven.contains(&"no test proves D-40".to_owned()), "not due: {unproven:?}");
        assert_eq!(table.proven(), 12);
        assert!(table.to_string().contains("D-12  a.rs:3 x\nD-20  -\n"), "{table}");
    }
}
