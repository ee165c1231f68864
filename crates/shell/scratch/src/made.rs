use std::fs::create_dir;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use context::{BoxError, Closing, Ctx};

use crate::held::{Held, OUTPUT, TMP};
use crate::sweep::sweep;

/// Directories of a session's own below the machine's temporary one, under a name that nobody guesses, for its user alone.
/// They are removed when the scope that they were made for closes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it. Whatever `ctx` owns later is gone before it is removed. The first one of a process also removes, in the
    /// background, what killed processes have left in the same place.
    ///
    /// # Errors
    ///
    /// What the machine says; a closing scope counts as interrupted.
    pub fn make(ctx: &Ctx) -> io::Result<Self> {
        let place = std::env::temp_dir().canonicalize()?;
        let held = Held::make(&place)?;
        let path = held.path().to_owned();
        create_dir(path.join(OUTPUT))?;
        create_dir(path.join(TMP))?;
        ctx.on_close("remove the session's temporary files", move || removed(held))
            .map_err(|closing: Closing| io::Error::new(io::ErrorKind::Interrupted, closing))?;
        sweep_once(ctx, place);
        Ok(Self { path })
    }

    /// Where output is kept that is too long to be shown. No confined command can write there.
    pub fn output(&self) -> PathBuf {
        self.path.join(OUTPUT)
    }

    /// The temporary directory of the session's file tools and commands.
    pub fn tmp(&self) -> PathBuf {
        self.path.join(TMP)
    }

    /// The directory that holds both.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

async fn removed(held: Held) -> Result<(), BoxError> {
    Ok(tokio::task::spawn_blocking(move || held.remove()).await??)
}

/// Looks for what killed processes left, once a process. It stops when the scope closes; the next process goes on.
fn sweep_once(ctx: &Ctx, place: PathBuf) {
    /// How many files and directories one process removes of others.
    const MOST: u64 = 1_000_000;
    static SWEPT: AtomicBool = AtomicBool::new(false);
    if SWEPT.swap(true, Ordering::Relaxed) {
        return;
    }
    let (closing, mut left) = (ctx.cancelled().clone(), MOST);
    let goes_on = move || {
        left = left.saturating_sub(1);
        left > 0 && !closing.is_cancelled()
    };
    // A scope that closes has no time for it.
    let _ = ctx.spawn_blocking("sweep temporary directories", move || sweep(&place, goes_on));
}
