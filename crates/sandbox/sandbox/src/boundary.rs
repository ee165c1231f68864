use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

mod exceptions;

pub use exceptions::NoException;

use crate::{Extent, Mode, Network, Protected, ProtectionSource, Protections};

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
    source: Option<Source>,
}

#[derive(Clone)]
struct Source(Arc<dyn ProtectionSource>);

/// What a mode means for files and the network. Computed in one place, and every enforcer takes it from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    sight: Sight,
    root: PathBuf,
    writable: Vec<PathBuf>,
    exceptions: Vec<PathBuf>,
    protections: Protections,
    withheld: Option<String>,
}

/// What a mode means for reading alone, which nothing on the disk has a say in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    mode: Mode,
    unreadable: Vec<PathBuf>,
}

impl Workspace {
    /// Works in `root`, the session's directory: absolute and canonical.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), temp: None, private: Vec::new(), protected: Vec::new(), source: None }
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

    /// Protects one more path and everything below it: absolute, or relative to the root. For what configuration names, and for
    /// what is there of other sessions. The session's own temporary directory stays writable inside of it.
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.protected.push(path.into());
        self
    }

    /// Says who knows what else is protected, such as the places inside the root that git's own configuration leads to.
    /// Asked at each boundary from now on.
    pub fn protect_what(mut self, source: Arc<dyn ProtectionSource>) -> Self {
        self.source = Some(Source(source));
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

    /// What is protected beyond what always is, in the order that it was said in; without what a source knows.
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
            source: self.source.clone(),
        })
    }

    /// What `mode` means here at this moment. It may look at the disk, if there is a source of protections. Take a new one
    /// for each call: what is protected may be different then.
    pub fn boundary(&self, mode: Mode) -> Boundary {
        let (writable, protections, withheld) = match mode {
            Mode::ReadOnly => (Vec::new(), Protections::default(), None),
            Mode::WorkspaceWrite => {
                let (root, temp) = (Some(&self.root), self.temp.iter());
                match self.protections() {
                    Ok(protections) => (root.into_iter().chain(temp).cloned().collect(), protections, None),
                    Err((protections, why)) => (temp.cloned().collect(), protections, Some(why)),
                }
            }
            Mode::DangerFullAccess => (vec![PathBuf::from("/")], Protections::default(), None),
        };
        let (sight, root) = (self.sight(mode), self.root.clone());
        Boundary { sight, root, writable, exceptions: Vec::new(), protections, withheld }
    }

    /// What `mode` means here for reading alone.
    pub fn sight(&self, mode: Mode) -> Sight {
        let unreadable = match mode {
            Mode::ReadOnly | Mode::WorkspaceWrite => self.private.clone(),
            Mode::DangerFullAccess => Vec::new(),
        };
        Sight { mode, unreadable }
    }

    /// What a path that was named means. One around the session's own temporary directory, and not around its root, is
    /// not for that: such as the place that all sessions have theirs in.
    fn named(&self, path: PathBuf) -> Option<Protected> {
        let is_around = self.temp.as_ref().is_some_and(|temp| *temp != path && temp.starts_with(&path));
        let extent = match () {
            () if !is_around || self.root.starts_with(&path) => Extent::Tree,
            () if path.starts_with(&self.root) => Extent::Entry,
            () => return None,
        };
        Some(Protected { path, extent })
    }

    /// What is known without the source, where that fails.
    fn protections(&self) -> Result<Protections, (Protections, String)> {
        let tree = |path: PathBuf| Protected { path, extent: Extent::Tree };
        let mut all = Protections::default();
        all.git_directory(&self.root.join(".git"));
        all.protected.push(tree(self.root.join(".tether")));
        all.protected.extend(self.protected.iter().filter_map(|path| self.named(lexical(&self.root.join(path)))));
        all.protected.extend(self.private.iter().cloned().map(tree));
        match self.source.as_ref().map(|source| source.0.find()) {
            None => {}
            Some(Ok(more)) => {
                all.protected.extend(more.protected);
                all.under_way.extend(more.under_way);
            }
            Some(Err(why)) => return Err((all, why)),
        }
        Ok(all)
    }
}

/// The same one, not an equal one.
impl PartialEq for Source {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Source {}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProtectionSource")
    }
}

impl Sight {
    /// The mode it is the meaning of.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether anything is forbidden at all.
    pub fn is_confined(&self) -> bool {
        match self.mode {
            Mode::ReadOnly | Mode::WorkspaceWrite => true,
            Mode::DangerFullAccess => false,
        }
    }

    /// What may not be read, nor anything below it: directories and files.
    pub fn unreadable_roots(&self) -> &[PathBuf] {
        &self.unreadable
    }
}

impl Boundary {
    /// The mode it is the meaning of.
    pub fn mode(&self) -> Mode {
        self.sight.mode
    }

    /// The session's directory: what relative paths are relative to, under any mode.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether anything is forbidden at all.
    pub fn is_confined(&self) -> bool {
        self.sight.is_confined()
    }

    /// What it means for reading alone.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    /// The directories below which files may be written, but for what is protected. Empty: nothing may be written but
    /// `/dev/null` and a process's own standard streams.
    pub fn writable_roots(&self) -> &[PathBuf] {
        &self.writable
    }

    /// Why the session's directory is not among the writable roots though the mode would have it there: it cannot be told
    /// what is protected in it. Whoever has nothing to do without it refuses with this.
    pub fn withheld(&self) -> Option<&str> {
        self.withheld.as_deref()
    }

    /// What may not be read, nor anything below it: directories and files.
    pub fn unreadable_roots(&self) -> &[PathBuf] {
        self.sight.unreadable_roots()
    }

    /// What may not be written below the writable roots. What is Tether's own is among it, even inside the
    /// root.
    pub fn protected(&self) -> &[Protected] {
        &self.protections.protected
    }

    /// Trees below the writable roots that file tools may not write either, while commands may; see
    /// [`Protections::under_way`].
    pub fn under_way(&self) -> &[PathBuf] {
        &self.protections.under_way
    }

    /// What commands may do on the network, unless configuration says otherwise.
    pub fn network(&self) -> Network {
        self.mode().network()
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
    use std::sync::Mutex;

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
    fn a_temporary_directory_stays_writable_where_all_of_them_are() {
        let extent = |workspace: Workspace| {
            let boundary = workspace.protect("/tmp/all").boundary(Mode::WorkspaceWrite);
            let named = boundary.protected().iter().find(|it| it.path == Path::new("/tmp/all"));
            named.map(|it| it.extent)
        };
        assert_eq!(extent(Workspace::new("/w").temp("/tmp")), Some(Extent::Tree), "that of all is shared");
        assert_eq!(extent(Workspace::new("/w").temp("/tmp/all")), Some(Extent::Tree), "it is protected itself");
        assert_eq!(extent(Workspace::new("/tmp").temp("/var/tmp/all/s1")), Some(Extent::Tree));
        assert_eq!(extent(Workspace::new("/tmp/all/w").temp("/tmp/all/s1")), Some(Extent::Tree), "the root as well");
        assert_eq!(extent(Workspace::new("/w").temp("/tmp/all/s1")), None, "nothing else in it is writable");
        assert_eq!(extent(Workspace::new("/").temp("/tmp/all/s1")), Some(Extent::Entry));
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
            ("/w/.git/config", Extent::File),
            ("/w/.git/config.worktree", Extent::File),
            ("/w/.git/commondir", Extent::File),
            ("/w/.git/modules", Extent::Tree),
            ("/w/.git/worktrees", Extent::Tree),
            ("/w/.git/remotes", Extent::Tree),
            ("/w/.git/branches", Extent::Tree),
            ("/w/.tether", Extent::Tree),
            ("/w/ci/deploy", Extent::Tree),
            ("/w/abs", Extent::Tree),
            ("/w/.home", Extent::Tree),
            ("/c/.env", Extent::Tree),
        ];
        assert_eq!(said, want);
        let under_way = ["rebase-merge", "rebase-apply", "sequencer"].map(|name| Path::new("/w/.git").join(name));
        assert_eq!(boundary.under_way(), under_way);
    }

    #[test]
    fn a_source_is_asked_at_each_boundary_and_one_that_fails_withholds_the_root() {
        struct Changing(Mutex<Vec<Result<Protections, String>>>);
        impl ProtectionSource for Changing {
            fn find(&self) -> Result<Protections, String> {
                self.0.lock().unwrap().pop().expect("asked once more than expected")
            }
        }
        let one = |name: &str| {
            let protected = vec![Protected { path: name.into(), extent: Extent::Tree }];
            Ok(Protections { protected, under_way: vec![format!("{name}/u").into()] })
        };
        let answers = vec![Err("it is gone".to_owned()), one("/w/second"), one("/w/first")];
        let workspace = workspace().protect_what(Arc::new(Changing(Mutex::new(answers))));
        for name in ["/w/first", "/w/second"] {
            let boundary = workspace.boundary(Mode::WorkspaceWrite);
            assert_eq!(boundary.protected().last().unwrap().path, Path::new(name));
            assert_eq!(boundary.under_way().last().unwrap(), &Path::new(name).join("u"));
            assert_eq!((boundary.withheld(), boundary.writable_roots().len()), (None, 2));
        }
        // Where nothing of the root may be written, or nothing is protected, it has no say.
        for mode in [Mode::ReadOnly, Mode::DangerFullAccess] {
            assert_eq!(workspace.boundary(mode).withheld(), None);
        }
        assert_eq!(workspace.sight(Mode::WorkspaceWrite).unreadable_roots().len(), 2);
        let boundary = workspace.boundary(Mode::WorkspaceWrite);
        assert_eq!(boundary.withheld(), Some("it is gone"));
        assert_eq!(boundary.writable_roots(), [Path::new("/tmp/s1")]);
        assert_eq!(boundary.protected().len(), 14, "what is known all the same");
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
