use std::path::{Component, Path, PathBuf};

use crate::{Mode, Network};

/// Where a session works: everything that decides its boundary but the mode.
///
/// The paths are taken as they are. Whoever makes one has them absolute and canonicalised by the file system first;
/// nothing here follows a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
    temp: Option<PathBuf>,
    private: Vec<PathBuf>,
    protected: Vec<PathBuf>,
}

/// What a mode means for files and the network. Computed in one place, and every enforcer takes it from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    mode: Mode,
    root: PathBuf,
    writable: Vec<PathBuf>,
    unreadable: Vec<PathBuf>,
    protected: Vec<Protected>,
}

/// A path below a writable root that may not be written, renamed, linked over or removed all the same: what is put
/// there would run on the host later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Absolute. It need not exist; then it may not be created.
    pub path: PathBuf,
    /// How much of it.
    pub extent: Extent,
}

/// How much a protection covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The name itself: not created, replaced, renamed or removed. What is below it may change.
    Entry,
    /// The name and everything below it.
    Tree,
}

/// What git runs code from, or is led elsewhere by.
const GIT: [&str; 6] = ["hooks", "config", "config.worktree", "commondir", "modules", "worktrees"];

impl Workspace {
    /// Works in `root`, the session's directory: absolute and canonical.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), temp: None, private: Vec::new(), protected: Vec::new() }
    }

    /// Adds a temporary directory of the session's own, absolute and canonical: writable where the root is.
    pub fn temp(mut self, temp: impl Into<PathBuf>) -> Self {
        self.temp = Some(temp.into());
        self
    }

    /// Says one more place that is Tether's own, such as its logs, its settings or its keys; a file, or a directory with
    /// everything below it, absolute and canonical. Under confinement it is never readable by the model's tools and
    /// never writable, wherever it is.
    pub fn home(mut self, private: impl Into<PathBuf>) -> Self {
        self.private.push(private.into());
        self
    }

    /// Protects one more path and everything below it: absolute, or relative to the root. For what configuration names,
    /// and for the places inside the root that git's own configuration leads to (`core.hooksPath`, `include.path`).
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }

    /// The session's directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The session's own temporary directory.
    pub fn temp_dir(&self) -> Option<&Path> {
        self.temp.as_deref()
    }

    /// What is Tether's own, in the order that it was said in.
    pub fn private(&self) -> &[PathBuf] {
        &self.private
    }

    /// What is protected beyond what always is, in the order that it was said in.
    pub fn protected(&self) -> &[PathBuf] {
        &self.protected
    }

    /// The same workspace with its directories and what is Tether's own passed through `map`, such as the file system's canonicalisation.
    ///
    /// # Errors
    ///
    /// The first that `map` returns.
    pub fn try_map<E>(&self, mut map: impl FnMut(&Path) -> Result<PathBuf, E>) -> Result<Self, E> {
        Ok(Self {
            root: map(&self.root)?,
            temp: self.temp.as_deref().map(&mut map).transpose()?,
            private: self.private.iter().map(|path| map(path)).collect::<Result<_, E>>()?,
            protected: self.protected.clone(),
        })
    }

    /// What `mode` means here.
    pub fn boundary(&self, mode: Mode) -> Boundary {
        let private = || self.private.clone();
        let (writable, unreadable, protected) = match mode {
            Mode::ReadOnly => (Vec::new(), private(), Vec::new()),
            Mode::WorkspaceWrite => {
                let writable = std::iter::once(&self.root).chain(&self.temp).cloned().collect();
                (writable, private(), self.protections())
            }
            Mode::DangerFullAccess => (vec![PathBuf::from("/")], Vec::new(), Vec::new()),
        };
        Boundary { mode, root: self.root.clone(), writable, unreadable, protected }
    }

    fn protections(&self) -> Vec<Protected> {
        let tree = |path: PathBuf| Protected { path, extent: Extent::Tree };
        let git = self.root.join(".git");
        let mut all = vec![Protected { path: git.clone(), extent: Extent::Entry }];
        all.extend(GIT.iter().map(|name| tree(git.join(name))));
        all.push(tree(self.root.join(".tether")));
        all.extend(self.protected.iter().map(|path| tree(lexical(&self.root.join(path)))));
        all.extend(self.private.iter().cloned().map(tree));
        all
    }
}

impl Boundary {
    /// The mode it is the meaning of.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The session's directory: what relative paths are relative to, under any mode.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether anything is forbidden at all.
    pub fn is_confined(&self) -> bool {
        match self.mode {
            Mode::ReadOnly | Mode::WorkspaceWrite => true,
            Mode::DangerFullAccess => false,
        }
    }

    /// The directories below which files may be written, but for what is protected. Empty: nothing may be written but
    /// `/dev/null` and a process's own standard streams.
    pub fn writable_roots(&self) -> &[PathBuf] {
        &self.writable
    }

    /// What may not be read, nor anything below it: directories and files.
    pub fn unreadable_roots(&self) -> &[PathBuf] {
        &self.unreadable
    }

    /// What may not be written below the writable roots. What is Tether's own is among it, even inside the
    /// root.
    pub fn protected(&self) -> &[Protected] {
        &self.protected
    }

    /// What commands may do on the network, unless configuration says otherwise.
    pub fn network(&self) -> Network {
        self.mode.network()
    }
}

/// `path` without `.` and `..`, by its text alone.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace::new("/w")
            .temp("/tmp/s1")
            .home("/w/.home")
            .home("/c/.env")
            .protect("ci/./x/../deploy")
            .protect("/w/abs")
    }

    #[test]
    fn read_only_writes_nothing_and_hides_home() {
        let boundary = workspace().boundary(Mode::ReadOnly);
        assert!(boundary.is_confined());
        assert!(boundary.writable_roots().is_empty());
        assert_eq!(boundary.unreadable_roots(), [Path::new("/w/.home"), Path::new("/c/.env")]);
    }

    #[test]
    fn workspace_write_adds_the_root_and_temp_but_for_what_is_protected() {
        let boundary = workspace().boundary(Mode::WorkspaceWrite);
        assert!(boundary.is_confined());
        assert_eq!(boundary.writable_roots(), [Path::new("/w"), Path::new("/tmp/s1")]);
        assert_eq!(boundary.unreadable_roots(), [Path::new("/w/.home"), Path::new("/c/.env")]);
        let said: Vec<_> = boundary.protected().iter().map(|p| (p.path.to_str().unwrap(), p.extent)).collect();
        let want = [
            ("/w/.git", Extent::Entry),
            ("/w/.git/hooks", Extent::Tree),
            ("/w/.git/config", Extent::Tree),
            ("/w/.git/config.worktree", Extent::Tree),
            ("/w/.git/commondir", Extent::Tree),
            ("/w/.git/modules", Extent::Tree),
            ("/w/.git/worktrees", Extent::Tree),
            ("/w/.tether", Extent::Tree),
            ("/w/ci/deploy", Extent::Tree),
            ("/w/abs", Extent::Tree),
            ("/w/.home", Extent::Tree),
            ("/c/.env", Extent::Tree),
        ];
        assert_eq!(said, want);
    }

    #[test]
    fn full_access_forbids_nothing() {
        let boundary = workspace().boundary(Mode::DangerFullAccess);
        assert!(!boundary.is_confined());
        assert_eq!(boundary.writable_roots(), [Path::new("/")]);
        assert!(boundary.unreadable_roots().is_empty() && boundary.protected().is_empty());
        assert_eq!(boundary.network(), Network::Allowed);
    }
}
