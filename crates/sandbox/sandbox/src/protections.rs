use std::path::{Path, PathBuf};

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
    /// The same where a file is looked for: whoever puts something there to hold the name puts an empty file.
    File,
}

/// What is protected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protections {
    /// What nobody writes.
    pub protected: Vec<Protected>,
    /// Trees that commands may write and file tools may not: git keeps there what it is in the middle of, such as the steps of
    /// a rebase, some of which run programs.
    pub under_way: Vec<PathBuf>,
}

/// Who knows what else is protected in a workspace at this moment. Asked anew for each boundary under which something may be
/// written, since others change meanwhile what it depends on. It may look at the disk.
pub trait ProtectionSource: Send + Sync {
    /// What is protected now.
    ///
    /// # Errors
    ///
    /// Why that cannot be told. Nothing of the root may be written then.
    fn find(&self) -> Result<Protections, String>;
}

/// What git runs code from, or is led elsewhere by.
const GIT: [(&str, Extent); 8] = [
    ("hooks", Extent::Tree),
    ("config", Extent::File),
    ("config.worktree", Extent::File),
    ("commondir", Extent::File),
    ("modules", Extent::Tree),
    ("worktrees", Extent::Tree),
    ("remotes", Extent::Tree),
    ("branches", Extent::Tree),
];

/// What git goes on with later.
const UNDER_WAY: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

impl Protections {
    /// Protects a directory that git keeps a repository in, whatever that is called. Git's own work in it goes on.
    pub fn git_directory(&mut self, git: &Path) {
        self.protected.push(Protected { path: git.to_owned(), extent: Extent::Entry });
        self.protected.extend(GIT.map(|(name, extent)| Protected { path: git.join(name), extent }));
        self.under_way.extend(UNDER_WAY.map(|name| git.join(name)));
    }
}
