//! Names that are put into a writable root so that they can be held, and taken away by the last command that needs them.
//!
//! A mount is undone in every namespace when somebody outside removes what it is on. So a placeholder may not go while another
//! command runs that holds it. The commands of a root are counted by locks on a file that no confined command can
//! reach, and what was put where is written into that file, so that a helper that was killed leaves nothing behind for long.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::anchored::Anchored;
use super::protect::{COMMON_DIR, Kind, Layout, Placeholder};
use super::stage::{SetUp, Stage};
use crate::plan::{Plan, Raw};

const STAGE: &str = "placeholder";
/// No confined command sees the machine's memory file system.
const LOCKS: &str = "/dev/shm";
/// Locks are held for as long as it takes to make or remove a few names.
const PATIENCE: Duration = Duration::from_secs(5);

/// The placeholders of a running command.
pub(crate) struct Held {
    /// `None` where there is no place for them that is ours alone: nothing is then ever taken away.
    locks: Option<Locks>,
}

/// Both are there as long as a command runs that has opened them.
struct Locks {
    turn: Lock,
    users: Lock,
}

struct Lock {
    path: PathBuf,
    file: File,
}

/// One that was put somewhere.
#[derive(Serialize, Deserialize)]
struct Put {
    path: Raw,
    dev: u64,
    ino: u64,
}

impl Held {
    /// Counts this command in, looks at the protected paths and puts what is missing.
    pub(crate) fn put(plan: &Plan) -> Result<(Self, Layout), SetUp> {
        let locks = Locks::take(plan).stage(STAGE)?;
        let mut recorded = locks.as_ref().map_or_else(Vec::new, |locks| read(&locks.turn.file));
        let before = recorded.len();
        let put = Layout::of(plan).and_then(|mut layout| {
            for placeholder in std::mem::take(&mut layout.placeholders) {
                match make(&placeholder).stage_at(STAGE, placeholder.path.display())? {
                    Some(found) => recorded.push(Put::new(&placeholder.path, &found)),
                    None => layout.without(&placeholder.path),
                }
            }
            Ok(layout)
        });
        if let Some(locks) = &locks {
            if recorded.len() != before {
                write(&locks.turn.file, &recorded).stage(STAGE)?;
            }
            flock(&locks.turn.file, FlockOperation::Unlock).stage(STAGE)?;
        }
        Ok((Self { locks }, put?))
    }

    /// Counts this command out. The last one takes away what was put.
    pub(crate) fn remove(self) -> Result<(), SetUp> {
        let Some(Locks { turn, users }) = self.locks else { return Ok(()) };
        wait_for(&turn.file).stage(STAGE)?;
        flock(&users.file, FlockOperation::Unlock).stage(STAGE)?;
        if flock(&users.file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // The innermost were put last.
            read(&turn.file).iter().rev().for_each(Put::take);
            fs::remove_file(&users.path).stage(STAGE)?;
            fs::remove_file(&turn.path).stage(STAGE)?;
        }
        flock(&turn.file, FlockOperation::Unlock).stage(STAGE)
    }
}

impl Locks {
    /// Has its turn, and is one of the users.
    fn take(plan: &Plan) -> io::Result<Option<Self>> {
        let Some(name) = Self::name(plan) else { return Ok(None) };
        loop {
            let turn = Lock::open(name.with_extension("turn"))?;
            wait_for(&turn.file)?;
            // The last user took it away meanwhile, or it is the one that everybody has.
            if turn.is_there() {
                let users = Lock::open(name.with_extension("users"))?;
                flock(&users.file, FlockOperation::LockShared)?;
                return Ok(Some(Self { turn, users }));
            }
        }
    }

    fn name(plan: &Plan) -> Option<PathBuf> {
        let home = Path::new(LOCKS).join(format!("tether-{}", geteuid().as_raw()));
        match DirBuilder::new().mode(0o700).create(&home) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        let found = home.symlink_metadata().ok()?;
        let ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode().trailing_zeros() >= 6;
        let root = fs::metadata(plan.root.path()).ok().filter(|_| ours)?;
        Some(home.join(format!("{:x}-{:x}", root.dev(), root.ino())))
    }
}

impl Lock {
    fn open(path: PathBuf) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        Ok(Self { file: options.open(&path)?, path })
    }

    fn is_there(&self) -> bool {
        let same = |one: Metadata, other: Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        self.file.metadata().ok().zip(self.path.metadata().ok()).is_some_and(|(open, there)| same(open, there))
    }
}

impl Put {
    fn new(path: &Path, found: &Metadata) -> Self {
        Self { path: Raw::from(path), dev: found.dev(), ino: found.ino() }
    }

    /// Only if it is still what was put there, and empty.
    fn take(&self) {
        let Ok(anchored) = Anchored::at(self.path.path()) else { return };
        let path = anchored.path();
        let Ok(found) = path.symlink_metadata() else { return };
        if (self.dev, self.ino) != (found.dev(), found.ino()) {
            return;
        }
        let remove = || match found.is_dir() {
            true => fs::remove_dir(path),
            false if is_placeholder(path, &found) => fs::remove_file(path),
            false => Ok(()),
        };
        if let Err(error) = remove()
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            // A command may have closed its own directory.
            let _ = anchored.opened(remove);
        }
    }
}

fn is_placeholder(path: &Path, found: &Metadata) -> bool {
    let says_common = || fs::read(path).is_ok_and(|text| text == COMMON_DIR);
    found.is_file() && (found.len() == 0 || found.len() == COMMON_DIR.len() as u64 && says_common())
}

/// `None` where nobody can make anything, so that nothing has to be held.
fn make(placeholder: &Placeholder) -> io::Result<Option<Metadata>> {
    let anchored = Anchored::at(&placeholder.path)?;
    let path = anchored.path();
    let made = match placeholder.kind {
        Kind::Directory => fs::create_dir(path),
        Kind::File => File::options().write(true).create_new(true).open(path).map(drop),
        Kind::CommonDir => make_whole(path, COMMON_DIR),
    };
    match made {
        Ok(()) => path.symlink_metadata().map(Some),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => Ok(None),
        // Somebody else's directory stays closed; one's own can be opened by the command.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_own_parent(&placeholder.path) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A file that is never seen without its content: git on the host would trip over it.
fn make_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(format!("tether-{}", std::process::id()));
    let mut file = File::options().write(true).create_new(true).open(&unfinished)?;
    let named =
        file.write_all(content).and_then(|()| Ok(renameat_with(CWD, &unfinished, CWD, path, RenameFlags::NOREPLACE)?));
    if named.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    named
}

fn is_own_parent(path: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.metadata().ok());
    parent.is_none_or(|parent| parent.uid() == geteuid().as_raw())
}

fn wait_for(turn: &File) -> io::Result<()> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match flock(turn, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < give_up => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return Ok(done?),
        }
    }
}

/// What cannot be read was cut off with the helper that wrote it.
fn read(mut turn: &File) -> Vec<Put> {
    let mut text = Vec::new();
    let read = turn.seek(SeekFrom::Start(0)).and_then(|_| turn.read_to_end(&mut text));
    read.ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn write(mut turn: &File, recorded: &[Put]) -> io::Result<()> {
    turn.set_len(0)?;
    turn.seek(SeekFrom::Start(0))?;
    turn.write_all(&serde_json::to_vec(recorded)?)
}
