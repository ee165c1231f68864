//! Looking through what is below a directory: by handles, one name at a time, never through a link.

use std::ffi::OsStr;
use std::path::{Component, Path};
use std::sync::Arc;

use context::Ctx;
use fs::{Directory, FsError, Kind, MAX_FILE_BYTES, Names};
use rustix::io::Errno;
use sandbox::ModeSource;

use crate::asked::Asked;
use crate::fence::Ground;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::read::{content, entries};

/// A directory that somebody looks through.
pub(crate) struct Held {
    pub(crate) ground: Arc<Ground>,
    pub(crate) mode: Arc<dyn ModeSource>,
    /// The agent's scope: nothing is looked at for one that closes.
    pub(crate) ctx: Ctx,
    pub(crate) handle: Handle,
    pub(crate) asked: Asked,
}

impl Directory for Held {
    fn path(&self) -> &Path {
        &self.asked.shown
    }

    fn entries(&self, max_entries: usize) -> Result<Names, FsError> {
        self.guarded(|guard| {
            let (found, truncated) = entries(&self.asked, &self.handle, max_entries)?;
            let seen = found.into_iter().filter(|(name, _, inode)| !guard.hides(&self.handle, name, *inode));
            let mut names = seen.map(|(name, kind, _)| (name, kind)).collect::<Vec<_>>();
            names.sort();
            Ok(Names { names, truncated })
        })
    }

    fn directory(&self, name: &OsStr) -> Result<Box<dyn Directory>, FsError> {
        let asked = self.below(name)?;
        let handle = self.guarded(|guard| {
            guard.look_at(&asked, &self.handle, name)?;
            let handle = self.handle.subdirectory(name).map_err(|error| match error {
                Errno::LOOP => FsError::NotADirectory(asked.shown.clone()),
                error => asked.failed(error),
            })?;
            guard.look_into(&asked, &handle)?;
            Ok(handle)
        })?;
        let (ground, mode, ctx) = (self.ground.clone(), self.mode.clone(), self.ctx.clone());
        Ok(Box::new(Self { ground, mode, ctx, handle, asked }))
    }

    fn read(&self, name: &OsStr, max_bytes: u64) -> Result<Vec<u8>, FsError> {
        let asked = self.below(name)?;
        self.guarded(|guard| {
            guard.look_at(&asked, &self.handle, name)?;
            let found = self.handle.entry(name).map_err(|error| asked.failed(error))?;
            guard.read(&asked, &found)?;
            match found.kind() {
                Kind::File => content(&asked, &self.handle, name, &found, max_bytes.min(MAX_FILE_BYTES)),
                Kind::Directory => Err(FsError::IsADirectory(asked.shown.clone())),
                kind => Err(FsError::NotAFile { path: asked.shown.clone(), kind }),
            }
        })
    }
}

impl Held {
    /// Does it if this directory may be looked into at this moment.
    fn guarded<T>(&self, work: impl FnOnce(&Guard<'_>) -> Result<T, FsError>) -> Result<T, FsError> {
        if self.ctx.cancelled().is_cancelled() {
            return Err(FsError::Closing);
        }
        let sight = self.ground.workspace.sight(self.mode.mode());
        let guard = Guard::reading(&sight, &self.ground).map_err(|error| self.asked.failed(error))?;
        guard.look_into(&self.asked, &self.handle)?;
        work(&guard)
    }

    /// What is called `name` in this directory, which takes a single name.
    fn below(&self, name: &OsStr) -> Result<Asked, FsError> {
        let mut parts = Path::new(name).components();
        let single = matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name);
        let (full, shown) = (self.asked.full.join(name), self.asked.shown.join(name));
        let asked = Asked { operation: self.asked.operation, full, shown, names_directory: false };
        if single { Ok(asked) } else { Err(asked.invalid("it is not a single name")) }
    }
}
