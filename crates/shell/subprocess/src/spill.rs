//! All of an output on the disk.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use context::Ctx;
use uuid::Uuid;

/// Where an output goes of which too little is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillTo {
    /// The directory, which is made if it is not there. Each output gets a file of its own, which nobody else may read.
    pub dir: PathBuf,
    /// The most bytes of one file.
    pub most: u64,
}

/// How much is written at once.
const BLOCK: usize = 64 * 1024;

/// A file for an output, made with its first block.
pub(crate) struct Spill {
    ctx: Ctx,
    to: SpillTo,
    waiting: Vec<u8>,
    file: Result<Option<Open>, String>,
}

/// What has become of a spill.
pub(crate) enum Spilled {
    All(PathBuf),
    Beginning(PathBuf, u64),
    Failed(String),
}

/// Removed with its file unless it is kept.
struct Open {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    cut: bool,
}

impl Spill {
    pub(crate) fn new(ctx: Ctx, to: SpillTo) -> Self {
        Self { ctx, to, waiting: Vec::new(), file: Ok(None) }
    }

    /// Takes a piece. It is on its way to the disk once there is enough of it and `over` says that memory is not enough.
    pub(crate) async fn push(&mut self, bytes: &[u8], over: bool) {
        if self.is_done() {
            return;
        }
        self.waiting.extend_from_slice(bytes);
        if over && self.waiting.len() >= BLOCK {
            self.write().await;
        }
    }

    /// Nothing more is to be written.
    fn is_done(&self) -> bool {
        match &self.file {
            Ok(Some(open)) => open.cut,
            Ok(None) => false,
            Err(_) => true,
        }
    }

    /// Writes what is left and keeps the file.
    pub(crate) async fn finish(mut self) -> Spilled {
        if !self.is_done() {
            self.write().await;
        }
        match self.file {
            Ok(Some(open)) => open.keep(),
            Ok(None) => Spilled::Failed("nothing was written".to_owned()),
            Err(why) => Spilled::Failed(why),
        }
    }

    /// On a thread for such work, which the owner of the process joins.
    async fn write(&mut self) {
        let (to, bytes) = (self.to.clone(), std::mem::take(&mut self.waiting));
        let open = std::mem::replace(&mut self.file, Err("the writing was cut off".to_owned()));
        let write = move || -> io::Result<Open> {
            let mut open = match open {
                Ok(Some(open)) => open,
                _ => Open::new(&to.dir)?,
            };
            open.write(&bytes, to.most)?;
            Ok(open)
        };
        self.file = match self.ctx.spawn_blocking("spill", write) {
            Ok(answer) => match answer.await {
                Ok(written) => written.map(Some).map_err(|error| format!("{}: {error}", self.to.dir.display())),
                Err(_) => Err("the writing was cut off".to_owned()),
            },
            Err(closing) => Err(closing.to_string()),
        };
    }
}

impl Open {
    fn new(dir: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = dir.join(format!("output-{}.txt", Uuid::now_v7()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { path, file: Some(file), written: 0, cut: false })
    }

    fn write(&mut self, bytes: &[u8], most: u64) -> io::Result<()> {
        let room = usize::try_from(most - self.written).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.cut = fits.len() < bytes.len();
        self.written += fits.len() as u64;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(fits))
    }

    fn keep(mut self) -> Spilled {
        self.file = None;
        let (path, written) = (std::mem::take(&mut self.path), self.written);
        if self.cut { Spilled::Beginning(path, written) } else { Spilled::All(path) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
