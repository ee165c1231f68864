//! What the store asks of a file system, so that tests can have one that fails.

#[cfg(test)]
pub(crate) mod fake;
mod folder;
mod lease;

use std::any::Any;
use std::io;
use std::panic::resume_unwind;
use std::thread;

pub(crate) use folder::Folder;

/// From so many bytes on, two threads read.
const MANY: usize = 2 << 20;

/// One directory.
pub(crate) trait Disk: Send + Sync {
    /// Makes the directory if it is not there.
    fn prepare(&self) -> io::Result<()>;

    /// What is in it.
    fn names(&self) -> io::Result<Vec<String>>;

    /// A regular file in it. Links are not followed.
    fn open(&self, name: &str, how: How) -> io::Result<Box<dyn Blob>>;

    /// What a name leads to. Links are not followed.
    fn stat(&self, name: &str) -> io::Result<Stat>;

    /// A new and empty file that nobody sees before it gets its name. Where the file system has none without a name, it is
    /// called `unfinished`, whatever was there.
    fn begin(&self, unfinished: &str) -> io::Result<Box<dyn Blob>>;

    /// Gives such a file its name, which must be free.
    fn finish(&self, begun: &dyn Blob, unfinished: &str, name: &str) -> io::Result<()>;

    /// Takes a name away.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names are on stable storage.
    fn sync_names(&self) -> io::Result<()>;

    /// The OS lock on a file, made if it is not there, and with this process's id in it.
    fn lease(&self, name: &str) -> io::Result<Leased>;

    /// Keeps nothing ready for the next lease any more.
    fn close(&self) {}

    /// The process whose id is in a lock file, if it lives. Does not touch the lock.
    fn holder(&self, name: &str) -> Option<u32>;
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// One that is there, to read it.
    Read,
    /// One that is there, to read and write it.
    Write,
    /// One that is not there.
    New,
}

/// An open file.
pub(crate) trait Blob: Any + Send + Sync {
    /// What it was when it was opened.
    fn as_opened(&self) -> Stat;
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Writes at most `len` bytes of another file of the same disk, without their passing through this process.
    fn copy_at(&self, offset: u64, source: &dyn Blob, from: u64, len: u64) -> io::Result<u64>;
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Returns when the bytes and the length are on stable storage.
    fn sync(&self) -> io::Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub len: u64,
    /// In milliseconds since the Unix epoch.
    pub modified: u64,
    /// Equal for equal files.
    pub identity: (u64, u64),
    /// When anything about it was last changed, by the system's clock: nobody can set it back.
    pub changed: (i64, i64),
}

/// Whoever has it, has the lock. Dropping it frees the lock; its file is removed, or kept under another name for the next.
pub(crate) type Lease = Box<dyn Send>;

pub(crate) enum Leased {
    Mine(Lease),
    /// By another, with its process id where that is known.
    Held(Option<u32>),
}

impl dyn Blob + '_ {
    /// Writes all of it, however little the system takes at a time.
    pub(crate) fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `len` bytes of another file, which must have them.
    pub(crate) fn copy_all_at(&self, mut offset: u64, source: &dyn Blob, mut from: u64, len: u64) -> io::Result<()> {
        let end = from + len;
        while from < end {
            match self.copy_at(offset, source, from, end - from) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    from += count;
                    offset += count;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// At most `len` bytes from `offset` on; fewer only where the file ends. The second half of many is read by a thread
    /// of its own: most of what it costs is fresh memory.
    pub(crate) fn read_from(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let (first, second) = bytes.split_at_mut(if len < MANY { len } else { len / 2 });
        let middle = offset + first.len() as u64;
        let (begin, end) = thread::scope(|scope| {
            let reader = match second.is_empty() {
                true => None,
                false => thread::Builder::new().spawn_scoped(scope, || self.fill(second, middle)).ok(),
            };
            let begin = self.fill(first, offset);
            (begin, reader.map(|reader| reader.join().unwrap_or_else(|panic| resume_unwind(panic))))
        });
        let (begin, end) = (begin?, end.transpose()?);
        let half = first.len();
        let filled = match end {
            _ if begin < half => begin,
            Some(end) => half + end,
            None => half + self.fill(&mut bytes[half..], middle)?,
        };
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// How many bytes there were.
    fn fill(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(&mut bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
