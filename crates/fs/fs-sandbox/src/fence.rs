use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use context::Ctx;
use fs::{Change, Directory, FileContent, FileSystem, FsError, Listing, Stat, WriteOutcome};
use rustix::io::Errno;
use sandbox::{Boundary, Grant, Mode, ModeSource, Operation, Sight, Workspace, effective};

use crate::asked::Asked;
use crate::git::{Git, GitUser};
use crate::handle::{Handle, Id, can_resolve_beneath};
use crate::held::Held;
use crate::lands::{lands, names};
use crate::write::Make;

/// How many paths can be protected, beyond those that always are.
const MAX_PROTECTED: usize = 1_024;

/// How many files can be written at once.
const LANES: usize = 64;

/// One agent's files, fenced in. Found in the agent's realm as `dyn FileSystem`.
pub struct Fence {
    ground: Arc<Ground>,
    mode: Arc<dyn ModeSource>,
    ctx: Ctx,
}

/// Opens fences that take turns at a file, so that two agents of one process that edit it lose nothing. Between
/// processes, and for writers that are not fences, an edit only notices that the file changed.
#[derive(Clone)]
pub struct Fences {
    lanes: Arc<Lanes>,
    git: GitUser,
}

/// Why a fence was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The root or the temporary directory is not one that can be entered, or what is Tether's own cannot be looked at.
    #[error("cannot open {}: {source}", .path.display())]
    Directory {
        /// What was given.
        path: PathBuf,
        /// What the machine said.
        source: io::Error,
    },
    /// More paths are to be protected than are looked at before every write.
    #[error(
        "{count} paths are to be protected; at most {MAX_PROTECTED} can be: name the directories above them instead"
    )]
    TooManyProtected {
        /// How many there are.
        count: usize,
    },
    /// The kernel does not resolve paths beneath a handle, and nothing less will do.
    #[error("this kernel cannot resolve paths beneath a directory (openat2, Linux 5.6): {0}")]
    Unsupported(#[source] io::Error),
}

/// What a fence knows without asking: where its roots are.
pub(crate) struct Ground {
    pub(crate) workspace: Workspace,
    pub(crate) root: Handle,
    /// What may be written where the mode lets it, by its canonical path; and how else it was spelled.
    pub(crate) writable: Vec<Writable>,
    lanes: Arc<Lanes>,
}

pub(crate) struct Writable {
    pub(crate) path: PathBuf,
    pub(crate) spelled: PathBuf,
    pub(crate) handle: Handle,
}

pub(crate) struct Lanes([Mutex<()>; LANES]);

/// Whether whoever asked still waits. Nothing is put in place for someone who left.
pub(crate) struct Waiting(Arc<AtomicBool>);

impl Fence {
    /// Opens the fence of one agent: `workspace` says where it works, `mode` what it may do there now, and `ctx`, the
    /// agent's scope, joins what still runs when it closes. See [`Fences::open`].
    ///
    /// # Errors
    ///
    /// Those of [`Fences::open`].
    pub fn open(workspace: Workspace, mode: Arc<dyn ModeSource>, ctx: Ctx) -> Result<Self, OpenError> {
        Fences::default().open(workspace, mode, ctx)
    }

    /// Where it is, as the file system has it: canonical, and with what finds what git leads to there.
    pub fn workspace(&self) -> &Workspace {
        &self.ground.workspace
    }

    async fn run<T, W>(&self, operation: Operation, path: &str, grant: Option<&Grant>, work: W) -> Result<T, FsError>
    where
        T: Send + 'static,
        W: FnOnce(&Ground, &Asked, Mode, &Waiting) -> Result<T, FsError> + Send + 'static,
    {
        let asked = Asked::new(operation, self.ground.workspace.root(), path)?;
        let mode = effective(self.mode.mode(), grant);
        let broke =
            || FsError::Io { operation, path: asked.shown.clone(), source: io::Error::other("the operation panicked") };
        let left = Left(Arc::default());
        let waiting = Waiting(left.0.clone());
        let (ground, given) = (self.ground.clone(), asked.clone());
        let work = move || work(&ground, &given, mode, &waiting);
        let answer = self.ctx.spawn_blocking("file", work).map_err(|_| FsError::Closing)?;
        answer.await.unwrap_or_else(|_| Err(broke()))
    }

    async fn look<T, W>(&self, operation: Operation, path: &str, work: W) -> Result<T, FsError>
    where
        T: Send + 'static,
        W: FnOnce(&Ground, &Asked, &Sight) -> Result<T, FsError> + Send + 'static,
    {
        let work =
            |ground: &Ground, asked: &Asked, mode, _: &Waiting| work(ground, asked, &ground.workspace.sight(mode));
        self.run(operation, path, None, work).await
    }
}

#[async_trait]
impl FileSystem for Fence {
    fn root(&self) -> &Path {
        self.ground.workspace.root()
    }

    fn mode(&self) -> Mode {
        self.mode.mode()
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<FileContent, FsError> {
        self.look(Operation::Read, path, move |ground, asked, sight| ground.read(asked, sight, max_bytes)).await
    }

    async fn write(&self, path: &str, content: Vec<u8>, grant: Option<&Grant>) -> Result<WriteOutcome, FsError> {
        let make = Make::Content(content);
        self.run(Operation::Write, path, grant, |ground, asked, mode, waiting| {
            ground.write(asked, &ground.boundary(asked, mode)?, waiting, make)
        })
        .await
    }

    async fn update(&self, path: &str, change: Change, grant: Option<&Grant>) -> Result<WriteOutcome, FsError> {
        let make = Make::Change(change);
        self.run(Operation::Edit, path, grant, |ground, asked, mode, waiting| {
            ground.write(asked, &ground.boundary(asked, mode)?, waiting, make)
        })
        .await
    }

    async fn list(&self, path: &str, max_entries: usize) -> Result<Listing, FsError> {
        self.look(Operation::List, path, move |ground, asked, sight| ground.list(asked, sight, max_entries)).await
    }

    async fn directory(&self, path: &str) -> Result<Box<dyn Directory>, FsError> {
        let held = self
            .look(Operation::Search, path, |ground, asked, sight| Ok((ground.directory(asked, sight)?, asked.clone())));
        let (handle, asked) = held.await?;
        let (ground, mode, ctx) = (self.ground.clone(), self.mode.clone(), self.ctx.clone());
        Ok(Box::new(Held { ground, mode, ctx, handle, asked }))
    }

    async fn stat(&self, path: &str) -> Result<Stat, FsError> {
        self.look(Operation::Read, path, |ground, asked, sight| ground.stat(asked, sight)).await
    }

    async fn leads_to(&self, path: &str) -> Result<PathBuf, FsError> {
        self.look(Operation::Read, path, |ground, asked, _| ground.leads_to(asked)).await
    }
}

impl Fences {
    /// Takes `user`'s configuration of git for the one that counts.
    pub fn for_user(user: GitUser) -> Self {
        Self { lanes: Arc::default(), git: user }
    }

    /// Opens the fence of one agent. The workspace's directories are canonicalised here; its root and its temporary
    /// directory are held open from now on, whatever is renamed meanwhile. What is Tether's own need not exist yet;
    /// where it is a link, what it leads to is Tether's own too. What git's configuration leads to inside the root is
    /// protected as well, as it is at each write.
    ///
    /// # Errors
    ///
    /// [`OpenError::Directory`], [`OpenError::TooManyProtected`], and [`OpenError::Unsupported`] on a kernel that
    /// cannot hold the fence.
    pub fn open(&self, workspace: Workspace, mode: Arc<dyn ModeSource>, ctx: Ctx) -> Result<Fence, OpenError> {
        let ground = Ground::open(workspace, self.lanes.clone(), self.git.clone())?;
        Ok(Fence { ground: Arc::new(ground), mode, ctx })
    }
}

impl Ground {
    pub(crate) fn open(given: Workspace, lanes: Arc<Lanes>, user: GitUser) -> Result<Self, OpenError> {
        let mut workspace = given.try_map(|path| lands(path).map_err(|error| directory(path, error)))?;
        for private in given.private() {
            for name in names(private).map_err(|error| directory(private, error))? {
                if !workspace.private().contains(&name) {
                    workspace = workspace.home(name);
                }
            }
        }
        let count = workspace.protected().len();
        let room = MAX_PROTECTED.checked_sub(count).ok_or(OpenError::TooManyProtected { count })?;
        let temp = workspace.temp_dir().map(Path::to_owned);
        let git = Git { root: workspace.root().to_owned(), temp, user, room };
        let workspace = workspace.protect_what(Arc::new(git));
        let hold = |spelled: &Path, path: &Path| {
            let handle = Handle::root(path).map_err(|error| directory(path, error.into()))?;
            let spelled = std::path::absolute(spelled).map_err(|error| directory(spelled, error))?;
            Ok(Writable { path: path.to_owned(), spelled, handle })
        };
        let mut writable = vec![hold(given.root(), workspace.root())?];
        if let (Some(spelled), Some(path)) = (given.temp_dir(), workspace.temp_dir()) {
            writable.push(hold(spelled, path)?);
        }
        let root = Handle::root(workspace.root()).map_err(|error| directory(workspace.root(), error.into()))?;
        can_resolve_beneath(&root).map_err(OpenError::Unsupported)?;
        Ok(Self { workspace, root, writable, lanes })
    }

    /// What may be written at this moment.
    fn boundary(&self, asked: &Asked, mode: Mode) -> Result<Boundary, FsError> {
        let boundary = self.workspace.boundary(mode);
        match boundary.withheld() {
            Some(why) => Err(asked.failed(io::Error::other(why))),
            None => Ok(boundary),
        }
    }

    /// What an absolute path leads to. What is below the root is found from its handle, also when it was renamed.
    pub(crate) fn named(&self, path: &Path) -> Result<Handle, Errno> {
        self.root.thing(path.strip_prefix(self.workspace.root()).unwrap_or(path))
    }

    /// One's turn at the entries of a directory.
    pub(crate) fn turn(&self, directory: Id) -> MutexGuard<'_, ()> {
        self.lanes.0[directory.lane(LANES)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    pub(crate) fn left(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Those of whoever runs this process.
impl Default for Fences {
    fn default() -> Self {
        Self::for_user(GitUser::of_this_process())
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

/// Says that whoever asked has left, when dropped.
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn directory(path: &Path, source: io::Error) -> OpenError {
    OpenError::Directory { path: path.to_owned(), source }
}
