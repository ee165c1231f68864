//! What may not be touched, by identity: taken anew for every call, from the boundary that the mode means.

use std::ffi::OsStr;
use std::path::Path;

use fs::{FsError, Why};
use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};
use rustix::io::Errno;
use sandbox::{Boundary, Extent, Sight};

use crate::asked::{Asked, folded, is_below, lexical, split};
use crate::fence::Ground;
use crate::handle::{Handle, Id};

/// A boundary's forbidden places as they are on the disk now. They are not held open: an identity that
/// is used anew meanwhile refuses too much, never too little.
pub(crate) struct Guard<'a> {
    sight: &'a Sight,
    /// Not read, nor anything below.
    hidden: Vec<Id>,
    /// Names in a directory that are not looked at.
    hidden_names: Vec<(Id, String)>,
    /// Not written, nor anything below.
    trees: Vec<Id>,
    /// Not written.
    entries: Vec<Id>,
    /// Names in a directory that may not come into being.
    names: Vec<(Id, String)>,
}

impl<'a> Guard<'a> {
    /// What may not be read.
    pub(crate) fn reading(sight: &'a Sight, ground: &Ground) -> Result<Self, Errno> {
        let (mut hidden, mut hidden_names) = (Vec::new(), Vec::new());
        for path in sight.unreadable_roots() {
            let (parent, name) = split(path);
            if let (Some(parent), Some(name)) = (existing(ground.named(parent))?, name) {
                hidden_names.push((parent, folded(name)));
            }
            hidden.extend(existing(ground.named(path))?);
        }
        Ok(Self { sight, hidden, hidden_names, trees: Vec::new(), entries: Vec::new(), names: Vec::new() })
    }

    /// What may not be written under `boundary`.
    pub(crate) fn writing(boundary: &'a Boundary, ground: &Ground) -> Result<Self, Errno> {
        let mut guard = Self::reading(boundary.sight(), ground)?;
        for (path, extent) in refused(boundary) {
            let (parent, name) = split(path);
            let (Some(parent), Some(name)) = (existing(ground.named(parent))?, name) else { continue };
            let found = match extent {
                Extent::Tree | Extent::File => &mut guard.trees,
                Extent::Entry => &mut guard.entries,
            };
            found.extend(existing(ground.named(path))?);
            guard.names.push((parent, folded(name)));
        }
        Ok(guard)
    }

    /// Refuses what is forbidden by its text alone. The disk has the last word, but what is not there yet has no other.
    pub(crate) fn text(boundary: &Boundary, asked: &Asked, resolved: &Path) -> Result<(), FsError> {
        let path = lexical(resolved);
        for (protected, extent) in refused(boundary) {
            let hit = match extent {
                Extent::Tree | Extent::File => is_below(&path, protected),
                Extent::Entry => is_below(&path, protected) && is_below(protected, &path),
            };
            if hit {
                let private = boundary.unreadable_roots().iter().any(|root| root == protected);
                return Err(asked.denied(boundary.mode(), if private { Why::Home } else { Why::Protected }));
            }
        }
        Ok(())
    }

    /// Refuses a directory that may not be looked into.
    pub(crate) fn look_into(&self, asked: &Asked, directory: &Handle) -> Result<(), FsError> {
        self.not_a_process(asked, directory)?;
        let chain = directory.upwards().map_err(|error| asked.failed(error))?;
        self.not_hidden(asked, &chain)
    }

    /// Refuses a name in `directory` that may not be looked at, whether it is there or not.
    pub(crate) fn look_at(&self, asked: &Asked, directory: &Handle, name: &OsStr) -> Result<(), FsError> {
        if holds(&self.hidden_names, directory, &folded(name)) {
            return Err(asked.denied(self.sight.mode(), Why::Home));
        }
        Ok(())
    }

    /// Refuses a thing that may not be read, whatever it is called.
    pub(crate) fn read(&self, asked: &Asked, found: &Handle) -> Result<(), FsError> {
        self.not_hidden(asked, &[found.id()])
    }

    /// Whether an entry of `directory` is one that may not be read: by its name, or by the inode that it is said to be.
    pub(crate) fn hides(&self, directory: &Handle, name: &OsStr, inode: u64) -> bool {
        self.hidden.contains(&directory.id().beside(inode)) || holds(&self.hidden_names, directory, &folded(name))
    }

    /// Refuses a directory in which nothing may be written: one that is not beneath `root`, is hidden or protected, or
    /// is below what is.
    pub(crate) fn write_into(&self, asked: &Asked, directory: &Handle, root: &Handle) -> Result<(), FsError> {
        let chain = directory.upwards().map_err(|error| asked.failed(error))?;
        self.not_hidden(asked, &chain)?;
        if !chain.contains(&root.id()) {
            return Err(asked.denied(self.sight.mode(), Why::Outside));
        }
        if self.trees.iter().any(|tree| chain.contains(tree)) {
            return Err(asked.denied(self.sight.mode(), Why::Protected));
        }
        Ok(())
    }

    /// Refuses a name in `directory` that may not be created or replaced, whatever is there.
    pub(crate) fn name(&self, asked: &Asked, directory: &Handle, name: &OsStr) -> Result<(), FsError> {
        self.look_at(asked, directory, name)?;
        if holds(&self.names, directory, &folded(name)) {
            return Err(asked.denied(self.sight.mode(), Why::Protected));
        }
        Ok(())
    }

    /// Refuses an existing thing that may not be replaced, whatever it is called.
    pub(crate) fn thing(&self, asked: &Asked, found: &Handle) -> Result<(), FsError> {
        self.read(asked, found)?;
        if self.trees.iter().chain(&self.entries).any(|guarded| *guarded == found.id()) {
            return Err(asked.denied(self.sight.mode(), Why::Protected));
        }
        Ok(())
    }

    /// Refuses what shows running processes, ours among them with its memory and environment.
    fn not_a_process(&self, asked: &Asked, directory: &Handle) -> Result<(), FsError> {
        if !self.sight.is_confined() {
            return Ok(());
        }
        let system = fstatfs(directory.file()).map_err(|error| asked.failed(error))?;
        if system.f_type == PROC_SUPER_MAGIC {
            return Err(asked.denied(self.sight.mode(), Why::Process));
        }
        Ok(())
    }

    fn not_hidden(&self, asked: &Asked, chain: &[Id]) -> Result<(), FsError> {
        if self.hidden.iter().any(|hidden| chain.contains(hidden)) {
            return Err(asked.denied(self.sight.mode(), Why::Home));
        }
        Ok(())
    }
}

/// What file tools do not write: what nobody does, and what git goes on with later.
fn refused(boundary: &Boundary) -> impl Iterator<Item = (&Path, Extent)> {
    let protected = boundary.protected().iter().map(|it| (&*it.path, it.extent));
    protected.chain(boundary.under_way().iter().map(|path| (&**path, Extent::Tree)))
}

fn holds(names: &[(Id, String)], directory: &Handle, name: &str) -> bool {
    names.iter().any(|(parent, guarded)| *parent == directory.id() && guarded == name)
}

/// Nothing where there is nothing that this process could reach by that name. Any other failure is one: a forbidden
/// place that could not be looked at must not count as absent.
fn existing(found: Result<Handle, Errno>) -> Result<Option<Id>, Errno> {
    match found {
        Ok(found) => Ok(Some(found.id())),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sandbox::{Mode, Operation, Workspace};

    use super::*;
    use crate::GitUser;

    /// The kernel's word is not the only one: a handle that left the root is refused too.
    #[test]
    fn a_directory_that_is_not_beneath_the_root_is_refused_by_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        let ground = Ground::open(Workspace::new(top.join("ws")), Arc::default(), GitUser::default()).unwrap();
        let boundary = ground.workspace.boundary(Mode::WorkspaceWrite);
        let guard = Guard::writing(&boundary, &ground).unwrap();
        let asked = Asked::new(Operation::Write, &top.join("ws"), "sub/x").unwrap();
        let sub = Handle::root(&top.join("ws/sub")).unwrap();
        let check = || guard.write_into(&asked, &sub, &ground.root);
        assert!(check().is_ok());
        std::fs::rename(top.join("ws/sub"), top.join("moved")).unwrap();
        assert!(matches!(check(), Err(FsError::Denied(_, Why::Outside))));
    }
}
