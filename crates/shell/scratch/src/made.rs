use std::fs::create_dir;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use context::{BoxError, Closing, Ctx};

use crate::held::{Held, OUTPUT, TMP};
use crate::place::{Apart, leave, place};
use crate::sweep::sweep;

/// Directories of a session's own in one of the [`places`](crate::places), under a name that nobody guesses, for its user alone.
/// They are removed when the scope that they were made for closes.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it, apart from what the realm has as [`Apart`]. Whatever `ctx` owns later is gone before it is removed. The
    /// first one of a process also removes, in the background, what killed processes have left in the same place.
    ///
    /// # Errors
    ///
    /// What the machine says; a closing scope counts as interrupted.
    pub fn make(ctx: &Ctx) -> io::Result<Self> {
        Self::make_apart(ctx, ctx.get::<Apart>().as_deref())
    }

    /// Makes it, apart from that.
    ///
    /// # Errors
    ///
    /// As [`Scratch::make`].
    pub fn make_apart(ctx: &Ctx, apart: Option<&Apart>) -> io::Result<Self> {
        let held = Held::make(|| place(apart))?;
        let (path, place) = (held.path().to_owned(), held.place().to_owned());
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
    let remove = move || {
        let place = held.place().to_owned();
        let removed = held.remove();
        leave(&place);
        removed
    };
    Ok(tokio::task::spawn_blocking(remove).await??)
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
