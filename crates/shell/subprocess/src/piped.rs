//! The harness's ends of a command's streams.

use std::io;

use tokio::net::unix::pipe;
use tokio::sync::watch;

use crate::Ended;

/// What is read at once.
const PIECE: usize = 64 * 1024;

/// The most that a pipe holds unless somebody with the right to do so has made it larger.
pub(crate) const PIPE: usize = 1024 * 1024;

/// The pipes of a command with which the harness talks.
#[derive(Debug)]
pub struct Pipes {
    /// What the command reads. Dropping it is the end of that.
    pub input: Input,
    /// What it writes.
    pub output: Output,
    /// What it complains.
    pub errors: Output,
}

/// Writes what a command reads.
#[derive(Debug)]
pub struct Input {
    pipe: pipe::Sender,
    ended: watch::Receiver<Option<Ended>>,
}

/// Reads what a command writes, to its end, which is there at the latest when the tree is gone.
#[derive(Debug)]
pub struct Output {
    pipe: pipe::Receiver,
    buffer: Box<[u8]>,
    /// What may still be read once the tree is gone: what was in the pipe, not what a stranger goes on writing.
    rest: usize,
    ended: watch::Receiver<Option<Ended>>,
}

impl Input {
    pub(crate) fn new(pipe: pipe::Sender, ended: watch::Receiver<Option<Ended>>) -> Self {
        Self { pipe, ended }
    }

    /// Writes all of it, as fast as the command reads.
    ///
    /// # Errors
    ///
    /// Nobody reads any more.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            tokio::select! {
                biased;
                _ = self.ended.wait_for(Option::is_some) => return Err(io::ErrorKind::BrokenPipe.into()),
                ready = self.pipe.writable() => ready?,
            }
            match self.pipe.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Output {
    pub(crate) fn new(pipe: pipe::Receiver, ended: watch::Receiver<Option<Ended>>) -> Self {
        Self { pipe, buffer: vec![0; PIECE].into(), rest: PIPE, ended }
    }

    /// The next piece as it comes; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            tokio::select! {
                biased;
                ready = self.pipe.readable() => ready.ok()?,
                () = async { drop(self.ended.wait_for(Option::is_some).await) } => {}
            }
            let gone = self.ended.borrow().is_some() || self.ended.has_changed().is_err();
            match self.pipe.try_read(&mut self.buffer) {
                Ok(0) => return None,
                Ok(read) => {
                    if gone {
                        self.rest = self.rest.checked_sub(read)?;
                    }
                    return Some(self.buffer[..read].to_vec());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !gone => {}
                Err(_) => return None,
            }
        }
    }
}
