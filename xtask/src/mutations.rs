//! Taking away what keeps a promise, and seeing its test fail.
//!
//! Each patch in `xtask/promises` removes one line or so that enforces a promise, and names tests. One patch at a time is
//! applied to a copy of the project, and every test that it names must fail: not be missing, not fail to compile.

mod diff;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::workspace::{Workspace, root};
use crate::{process, report};

/// Where the patches are.
const PATCHES: &str = "xtask/promises";

/// A patch that must not go unnoticed.
#[derive(Debug, PartialEq, Eq)]
struct Mutation {
    name: String,
    promise: String,
    about: String,
    tests: Vec<Test>,
    diff: String,
}

/// One test of one integration binary: `crate::module::name`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Test {
    package: String,
    path: String,
}

/// What became of a test.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Failed,
    Passed,
    /// Nothing of that name was run.
    Missing,
    /// The patched code does not compile, or the test could not be run.
    Broken(String),
}

/// Applies every patch whose name contains `wanted`, one at a time.
pub(crate) fn run(wanted: &str) -> anyhow::Result<()> {
    let root = root()?;
    let mutations = read_all(&root.join(PATCHES))?;
    let copy = Copy::new(&root)?;
    let mut complaints = Vec::new();
    let chosen: Vec<_> = mutations.iter().filter(|mutation| mutation.name.contains(wanted)).collect();
    ensure!(!chosen.is_empty(), "no patch in {PATCHES} has a name with `{wanted}` in it");
    for mutation in &chosen {
        let began = Instant::now();
        let found = copy.with(mutation, |copy| mutation.tests.iter().map(|test| copy.judge(test)).collect::<Vec<_>>());
        match found {
            Err(error) => complaints.push(format!("{}: {error:#}", mutation.name)),
            Ok(verdicts) => {
                let wrong = mutation.tests.iter().zip(&verdicts).filter_map(|(test, verdict)| verdict.complaint(test));
                complaints.extend(wrong.map(|wrong| format!("{}: {wrong}", mutation.name)));
            }
        }
        println!("{}  {} ({} s)", mutation.promise, mutation.about, began.elapsed().as_secs());
        mutation.tests.iter().for_each(|test| println!("      {}::{}", test.package, test.path));
    }
    report("promises", &complaints, &format!("{} patches, each made its tests fail", chosen.len()))
}

impl Verdict {
    fn complaint(&self, test: &Test) -> Option<String> {
        let test = format!("{}::{}", test.package, test.path);
        match self {
            Self::Failed => None,
            Self::Passed => Some(format!("{test} passes without what keeps the promise")),
            Self::Missing => Some(format!("there is no test {test}")),
            Self::Broken(why) => Some(format!("{test} could not be run: {why}")),
        }
    }

    /// From what the test binary said, and whether cargo was content.
    fn of(output: &str, succeeded: bool) -> Self {
        let line = |start: &str| output.lines().find_map(|line| line.strip_prefix(start).map(str::to_owned));
        match line("test result: ") {
            Some(result) if result.contains(" 1 failed;") => Self::Failed,
            Some(result) if result.contains(" 0 passed; 0 failed;") => Self::Missing,
            Some(_) if succeeded => Self::Passed,
            _ => Self::Broken(line("error").map_or_else(|| "it said nothing".to_owned(), |why| format!("error{why}"))),
        }
    }
}

/// The project's files, in a directory of their own.
struct Copy {
    root: PathBuf,
    tree: PathBuf,
}

impl Copy {
    fn new(root: &Path) -> anyhow::Result<Self> {
        let copy = Self { root: root.to_owned(), tree: root.join("target/promises/tree") };
        fs::create_dir_all(&copy.tree)?;
        copy.sync()?;
        Ok(copy)
    }

    /// Makes the copy like the original. What is alike is not touched, so that it is not built again.
    fn sync(&self) -> anyhow::Result<()> {
        let wanted: BTreeSet<PathBuf> = Workspace::load()?.files()?.into_iter().collect();
        for file in &wanted {
            let (from, to) = (self.root.join(file), self.tree.join(file));
            let text = fs::read(&from).with_context(|| format!("{} could not be read", from.display()))?;
            if fs::read(&to).ok().as_ref() != Some(&text) {
                fs::create_dir_all(to.parent().expect("a file is in a directory"))?;
                fs::write(&to, text)?;
            }
        }
        let mut left_over = Vec::new();
        walk(&self.tree, Path::new(""), &mut |file| {
            if !wanted.contains(file) {
                left_over.push(file.to_owned());
            }
        })?;
        left_over.into_iter().try_for_each(|file| Ok(fs::remove_file(self.tree.join(file))?))
    }

    /// Works on the patched copy, and mends it afterwards.
    fn with<T>(&self, mutation: &Mutation, work: impl FnOnce(&Self) -> T) -> anyhow::Result<T> {
        for change in diff::parse(&mutation.diff)? {
            let file = self.tree.join(change.file);
            let text = fs::read_to_string(&file).with_context(|| change.file.to_owned())?;
            fs::write(&file, change.apply(&text)?)?;
        }
        let done = work(self);
        self.sync()?;
        Ok(done)
    }

    fn judge(&self, test: &Test) -> Verdict {
        let mut cargo = process::cargo(&self.tree);
        cargo.args(["test", "--quiet", "-p", &test.package, "--test", "it", "--", "--exact", &test.path]);
        // One failure is enough of an answer.
        cargo.env("PROPTEST_MAX_SHRINK_ITERS", "0").env("RUST_BACKTRACE", "0");
        // Never where the project is built: cargo would take the one's crates for the other's.
        cargo.env("CARGO_TARGET_DIR", self.root.join("target/promises/build"));
        match cargo.output() {
            Err(error) => Verdict::Broken(error.to_string()),
            Ok(ran) => {
                let said = [ran.stdout, ran.stderr].concat();
                Verdict::of(&String::from_utf8_lossy(&said), ran.status.success())
            }
        }
    }
}

fn walk(top: &Path, below: &Path, see: &mut dyn FnMut(&Path)) -> anyhow::Result<()> {
    for entry in fs::read_dir(top.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => walk(top, &path, see)?,
            false => see(&path),
        }
    }
    Ok(())
}

fn read_all(folder: &Path) -> anyhow::Result<Vec<Mutation>> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "patch"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> anyhow::Result<Mutation> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    parse(&name, &fs::read_to_string(file)?).with_context(|| format!("{}", file.display()))
}

fn parse(name: &str, text: &str) -> anyhow::Result<Mutation> {
    let at = text.find("--- ").context("there is no diff in it")?;
    let (head, diff) = text.split_at(at);
    let one = |key| fields(head, key).next().map(str::to_owned).with_context(|| format!("it has no line `{key}: …`"));
    let tests = fields(head, "test").map(|test| {
        let (package, path) = test.split_once("::").context("a test is named `crate::module::name`")?;
        Ok(Test { package: package.to_owned(), path: path.to_owned() })
    });
    let tests = tests.collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!tests.is_empty(), "it has no line `test: …`");
    Ok(Mutation { name: name.to_owned(), promise: one("promise")?, about: one("about")?, tests, diff: diff.to_owned() })
}

fn fields<'a>(head: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    head.lines().filter_map(move |line| line.strip_prefix(key)?.strip_prefix(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_it_breaks() {
        let text =
            "promise: D-01\nabout: the stamp\ntest: session::a::b\ntest: bundle::c\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n";
        let mutation = parse("stamp", text).unwrap();
        assert_eq!((&*mutation.promise, &*mutation.about), ("D-01", "the stamp"));
        let test = |package: &str, path: &str| Test { package: package.into(), path: path.into() };
        assert_eq!(mutation.tests, [test("session", "a::b"), test("bundle", "c")]);
        assert!(mutation.diff.starts_with("--- a/x\n"));
        for (text, wrong) in [
            ("promise: D-01\nabout: x\ntest: a::b\n", "no diff"),
            ("promise: D-01\nabout: x\n--- a/x\n", "`test: …`"),
            ("about: x\ntest: a::b\n--- a/x\n", "`promise: …`"),
            ("promise: D-01\nabout: x\ntest: a\n--- a/x\n", "crate::module::name"),
        ] {
            let told = format!("{:#}", parse("x", text).unwrap_err());
            assert!(told.contains(wrong), "{told}");
        }
    }

    #[test]
    fn only_a_failed_test_is_a_noticed_patch() {
        let ran = |counts: &str| format!("\nrunning 1 test\ntest result: x. {counts}; 0 ignored; 0 measured\n");
        assert_eq!(Verdict::of(&ran("0 passed; 1 failed"), false), Verdict::Failed);
        assert_eq!(Verdict::of(&ran("1 passed; 0 failed"), true), Verdict::Passed);
        assert_eq!(Verdict::of(&ran("0 passed; 0 failed"), true), Verdict::Missing);
        let broken = Verdict::of("error[E0425]: cannot find value\nerror: could not compile", false);
        assert_eq!(broken, Verdict::Broken("error[E0425]: cannot find value".into()));
        assert!(matches!(Verdict::of("", false), Verdict::Broken(_)));
    }
}
