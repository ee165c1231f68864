//! What cargo and the disk say of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

use crate::process;

/// The repository: where it is and which packages it has, ordered by name.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One package of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// As declared under `[package.metadata.tether]`.
    pub(crate) floor: Option<u32>,
    /// Relative to the root, with `/` between its parts.
    pub(crate) folder: String,
    /// Everything it needs to be built or to run, ours and others'. Not what its tests need.
    pub(crate) needs: Vec<String>,
    /// The source of its library, relative to the root.
    pub(crate) lib: Option<PathBuf>,
    pub(crate) benches: Vec<String>,
}

impl Package {
    /// Its family, if it is where a crate of the house belongs: `crates/FAMILY/NAME`.
    pub(crate) fn family(&self) -> Option<&str> {
        match self.folder.split('/').collect::<Vec<_>>()[..] {
            ["crates", family, _] => Some(family),
            _ => None,
        }
    }
}

impl Workspace {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let root = root()?;
        let output = process::cargo(&root)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .stderr(std::process::Stdio::inherit())
            .output()
            .context("cargo could not be started")?;
        anyhow::ensure!(output.status.success(), "`cargo metadata` failed");
        let mut packages = parse(&output.stdout, &root)?;
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { root, packages })
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// Every file that is, or could be, part of the repository, relative to the root and ordered. What the root's
    /// `.gitignore` names is left out; git itself is not asked, since a machine that only builds may lack it.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let ignored = fs::read_to_string(self.root.join(".gitignore")).unwrap_or_default();
        let mut files = Vec::new();
        walk(&self.root, Path::new(""), &ignored, &mut files)?;
        files.sort();
        Ok(files)
    }
}

/// Where the workspace is: cargo tells a program that it runs where its package is.
pub(crate) fn root() -> anyhow::Result<PathBuf> {
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(package) => Ok(Path::new(&package).parent().context("xtask is not in a workspace")?.to_owned()),
        None => std::env::current_dir().context("the working directory is gone"),
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    manifest_path: PathBuf,
    metadata: Option<serde_json::Value>,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

fn parse(json: &[u8], root: &Path) -> anyhow::Result<Vec<Package>> {
    let metadata: Metadata = serde_json::from_slice(json).context("`cargo metadata` said something unexpected")?;
    metadata.packages.into_iter().map(|row| row.package(root)).collect()
}

impl Row {
    fn package(self, root: &Path) -> anyhow::Result<Package> {
        let folder = self.manifest_path.parent().context("a manifest is in no folder")?;
        let floor = self.metadata.as_ref().and_then(|all| all.get("tether")?.get("floor")?.as_u64());
        let needed = |dependency: &&Dependency| dependency.kind.as_deref() != Some("dev");
        let mut needs: Vec<_> = self.dependencies.iter().filter(needed).map(|needed| needed.name.clone()).collect();
        needs.sort();
        needs.dedup();
        let of_kind =
            |kind: &'static str| self.targets.iter().filter(move |target| target.kind.iter().any(|k| k == kind));
        Ok(Package {
            floor: floor.map(u32::try_from).transpose().with_context(|| format!("the floor of `{}`", self.name))?,
            folder: slashed(folder.strip_prefix(root).unwrap_or(folder)),
            needs,
            lib: of_kind("lib").next().map(|lib| lib.src_path.strip_prefix(root).unwrap_or(&lib.src_path).to_owned()),
            benches: of_kind("bench").map(|bench| bench.name.clone()).collect(),
            name: self.name,
        })
    }
}

fn slashed(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn walk(root: &Path, folder: &Path, ignored: &str, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let here = root.join(folder);
    for entry in fs::read_dir(&here).with_context(|| format!("reading {}", here.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if is_ignored(&path, ignored) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(root, &path, ignored, files)?;
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// As git would say, for the patterns we use: `name` and `/name`, either with a `*` at its end.
fn is_ignored(path: &Path, ignored: &str) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let at_root = path.parent() == Some(Path::new(""));
    let matches = |pattern: &str| {
        let (rooted, pattern) = match pattern.strip_prefix('/') {
            Some(pattern) => (true, pattern),
            None => (false, pattern),
        };
        let pattern = pattern.trim_end_matches('/');
        (at_root || !rooted) && pattern.strip_suffix('*').map_or(name == pattern, |start| name.starts_with(start))
    };
    name == ".git"
        || ignored.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_read_from_metadata() {
        let json = br#"{"packages":[{"name":"llm","manifest_path":"/r/crates/core/llm/Cargo.toml",
            "metadata":{"tether":{"floor":1}},
            "dependencies":[{"name":"serde","kind":null},{"name":"tokio","kind":"dev"},{"name":"cc","kind":"build"}],
            "targets":[{"name":"llm","kind":["lib"],"src_path":"/r/crates/core/llm/src/lib.rs"},
                       {"name":"reply","kind":["bench"],"src_path":"/r/crates/core/llm/benches/reply.rs"}]}]}"#;
        let packages = parse(json, Path::new("/r")).unwrap();
        let llm = &packages[0];
        assert_eq!((llm.name.as_str(), llm.floor, llm.family()), ("llm", Some(1), Some("core")));
        assert_eq!(llm.needs, ["cc", "serde"], "not what only tests need");
        assert_eq!(llm.lib.as_deref(), Some(Path::new("crates/core/llm/src/lib.rs")));
        assert_eq!(llm.benches, ["reply"]);
    }

    #[test]
    fn ignored_files_are_those_of_the_patterns_we_use() {
        let check = |path: &str, expected: bool| {
            assert_eq!(
                is_ignored(Path::new(path), "# built\n/target\n/mutants.out*\n*.swp\nlocal/\n"),
                expected,
                "{path}"
            );
        };
        check("target", true);
        check("crates/target", false);
        check("mutants.out.old", true);
        check("crates/local", true);
        check(".git", true);
        check(".ci", false);
    }
}
