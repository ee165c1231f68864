//! A workspace with an outside, on a real file system; what is in it at a moment; a runtime for what is tried there.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::future::Future;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Long enough for a slow machine: only what hangs meets it.
const DEADLINE: Duration = Duration::from_secs(60);

/// `ws` is a workspace's root, `temp` its session's, `outside` anybody's, `home` and `ws/.home` may be Tether's.
pub(crate) struct World {
    top: PathBuf,
    secret: String,
    _dir: tempfile::TempDir,
}

/// Everything below a directory, by its name.
pub(crate) type Picture = BTreeMap<PathBuf, Thing>;

/// What one name stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) id: Id,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    pub(crate) times: [(i64, i64); 2],
    /// Of a file, or where a link leads.
    pub(crate) content: Vec<u8>,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    device: u64,
    inode: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let top = dir.path().canonicalize().expect("it was just made");
        let name = top.file_name().expect("a temporary directory has a name").to_string_lossy();
        let world = Self { secret: format!("nobody's business but {name}'s"), top, _dir: dir };
        for path in ["ws/sub", "ws/.git/hooks", "ws/.home/sessions", "outside", "home/sessions", "temp"] {
            fs::create_dir_all(world.at(path)).expect("the world is writable");
        }
        for (path, text) in [
            ("ws/file.txt", "one\ntwo\nthree\n"),
            ("ws/sub/deep.txt", "deep"),
            ("ws/.git/HEAD", "ref: refs/heads/main"),
            ("ws/.git/config", "[core]\n"),
            ("ws/.home/sessions/other.jsonl", &world.secret),
            ("home/sessions/other.jsonl", &world.secret),
            ("outside/secret.txt", "theirs"),
        ] {
            world.put(path, text);
        }
        world
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// What is Tether's own holds this, and nothing else does, in this world or another.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    /// Whether a path leads to something in this world.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| real.starts_with(&self.top))
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.top.join(path)
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().expect("it is below the top")).expect("the world is writable");
        fs::write(path, content).expect("the world is writable");
    }

    pub(crate) fn link(&self, target: &str, path: &str) {
        symlink(target, self.at(path)).expect("the world is writable");
    }

    pub(crate) fn picture(&self) -> Picture {
        let mut all = Picture::new();
        look(&self.top, &mut all);
        all
    }
}

impl Thing {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind() == rustix::fs::FileType::Directory
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == rustix::fs::FileType::RegularFile
    }

    /// Whether it is the same but for its times; and of a directory, for what is in it.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let links = self.is_directory() || self.links == other.links;
        self.id == other.id && self.mode == other.mode && self.content == other.content && links
    }

    fn kind(&self) -> rustix::fs::FileType {
        rustix::fs::FileType::from_raw_mode(self.mode)
    }
}

impl Id {
    pub(crate) fn of(meta: &Metadata) -> Self {
        Self { device: meta.dev(), inode: meta.ino() }
    }
}

fn look(path: &Path, all: &mut Picture) {
    let meta = path.symlink_metadata().expect("nothing goes away while one looks");
    let content = if meta.is_file() {
        fs::read(path).expect("a file of the world is readable")
    } else if meta.is_symlink() {
        fs::read_link(path).expect("it is a link").into_os_string().into_encoded_bytes()
    } else {
        Vec::new()
    };
    let times = [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())];
    let thing = Thing { id: Id::of(&meta), mode: meta.mode(), links: meta.nlink(), times, content };
    all.insert(path.to_owned(), thing);
    if meta.is_dir() {
        for entry in fs::read_dir(path).expect("a directory of the world is readable") {
            look(&entry.expect("its entries are readable").path(), all);
        }
    }
}

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
}

/// Runs to the end, which comes in time.
pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let work = async { tokio::time::timeout(DEADLINE, work).await.expect("it ends in time") };
    RUNTIME.with(|runtime| runtime.block_on(work))
}
