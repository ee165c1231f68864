//! Everything that a change has to pass, in order.

use std::fmt;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;

use crate::workspace::{Workspace, root};
use crate::{graph, house, mutations, notes, process, rustdoc, snapshots};

/// Runs every step, stops at the first that fails, and says last of all how the tests went.
pub(crate) fn run() -> ExitCode {
    let mut tally = Tally::default();
    let result = steps(&mut tally);
    let (verdict, code) = match &result {
        Ok(()) => ("every check passed".to_owned(), ExitCode::SUCCESS),
        Err(error) => (format!("failed: {error:#}"), ExitCode::FAILURE),
    };
    println!("\n{verdict}\n{tally}");
    code
}

fn steps(tally: &mut Tally) -> anyhow::Result<()> {
    let root = root()?;
    let cargo = |args: &str| {
        let mut cargo = process::cargo(&root);
        cargo.args(args.split(' '));
        cargo
    };
    step("lock file", || process::run(&mut cargo("fetch --locked")))?;
    step("format", || process::run(&mut cargo("fmt --all -- --check")))?;
    step("clippy", || process::run(&mut cargo("clippy --workspace --all-targets -- -D warnings")))?;
    step("docs", || process::run(cargo("doc --no-deps --workspace").env("RUSTDOCFLAGS", "-D warnings")))?;
    step("tests", || {
        let mut cargo = cargo("test --workspace");
        process::run_seen(rustdoc::strict(&mut cargo)?, |line| tally.see(line))
    })?;
    step("schedules", || {
        let mut cargo = cargo("test -p context -p agent --test model --target-dir target/shuttle");
        process::run_seen(cargo.env("RUSTFLAGS", "--cfg shuttle -D warnings"), |line| tally.see(line))
    })?;
    let workspace = Workspace::load()?;
    step("snapshots", || snapshots::check(&workspace))?;
    step("graph", || graph::run(&workspace, graph::Picture::Check))?;
    step("notes", || notes::run(&workspace, &notes::Ask::parse(&["--require"])?))?;
    step("promises", || mutations::run(""))?;
    step("house", || house::run(&workspace))?;
    step("deny", || process::run(&mut cargo("deny --all-features check bans licenses sources")))
}

fn step(name: &'static str, run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("\n== {name}");
    let began = Instant::now();
    run().context(name)?;
    println!("== {name}: passed in {} s", began.elapsed().as_secs());
    Ok(())
}

/// The sum of what every test binary said of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn see(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else {
            return;
        };
        for count in counts.split("; ") {
            match count.split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                Some((n, "ignored")) => self.ignored += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("tests: none was run");
        }
        write!(f, "tests: {} passed, {} failed", self.passed, self.failed)?;
        match self.ignored {
            0 => Ok(()),
            n => write!(f, ", {n} ignored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_every_binary_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test tests::test_result ... ok",
            "test result: FAILED. 1 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.20s",
        ] {
            tally.see(line);
        }
        assert_eq!(tally.to_string(), "tests: 4 passed, 2 failed, 1 ignored");
    }

    #[test]
    fn nothing_run_is_not_a_success() {
        assert_eq!(Tally::default().to_string(), "tests: none was run");
    }
}
