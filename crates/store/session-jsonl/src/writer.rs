//! Brings a file up to date with its log. Only one thread at a time has a writer.

use std::io;
use std::sync::Arc;

use session::Snapshot;
use session_store::Fault;

use crate::disk::{Blob, Disk, How, Lease};
use crate::names::Names;

mod open_files;
mod seed;

use open_files::Ahead;
pub(crate) use open_files::OpenFiles;
use seed::Ends;
pub(crate) use seed::Sources;

/// How many bytes are written at a time.
const BATCH: usize = 1 << 20;
/// A longer log is not written, since it would not be opened again.
pub(crate) const MOST_BYTES: u64 = 4 << 30;

/// A log's file, and how far it has come.
pub(crate) struct Writer {
    home: Home,
    /// `None` once the session was let go of.
    lease: Option<Lease>,
    /// Whether the session was there before, so that discarding it must not remove it.
    opened: bool,
    /// `None` before the first flush.
    file: Option<OnDisk>,
    /// While the file holds bytes that are not on stable storage and stays open for it.
    ahead: Option<Ahead>,
}

/// Where its files are, and what they share with those of other sessions.
#[derive(Clone)]
pub(crate) struct Home {
    pub disk: Arc<dyn Disk>,
    pub names: Names,
    pub files: Arc<OpenFiles>,
    pub sources: Arc<Sources>,
}

/// What is known of the file.
pub(crate) struct OnDisk {
    identity: (u64, u64),
    /// How long the header is, with its newline.
    head: u64,
    /// What is in the file, but for what is `ragged`.
    written: Mark,
    /// What is on stable storage.
    synced: Mark,
    /// Places between lines. What failed is written again as it was, so they stay what they are.
    ends: Ends,
    /// Whether there may be more bytes behind `written`: part of a batch that failed.
    ragged: bool,
    /// Whether the directory entry is on stable storage.
    named: bool,
}

/// A place between two lines.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    events: u64,
    bytes: u64,
}

impl Writer {
    /// For a session that has no file yet.
    pub(crate) fn fresh(home: Home, lease: Lease) -> Self {
        Self { home, lease: Some(lease), opened: false, file: None, ahead: None }
    }

    /// For a session whose file is there.
    pub(crate) fn opened(home: Home, lease: Lease, file: OnDisk) -> Self {
        Self { home, lease: Some(lease), opened: true, file: Some(file), ahead: None }
    }

    /// Whether there is no file yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.file.is_none()
    }

    /// Writes, without waiting for the disk. Does nothing where that would keep one file too many open, or where
    /// nothing may be seen of the session yet.
    pub(crate) fn write_ahead(&mut self, log: &Snapshot, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let Self { home, lease: Some(_), file: Some(file), ahead, .. } = self else { return Ok(()) };
        let Some(permit) = ahead.take().or_else(|| home.files.go_ahead()) else { return Ok(()) };
        let blob = home.ready(file)?;
        let appended = home.append(&*blob, file, log, buffer);
        *ahead = (file.written != file.synced).then_some(permit);
        home.files.keep(home.names.id(), blob, ahead.is_some());
        home.publish(file);
        appended
    }

    /// Writes what is not written and waits until all of `log` is on stable storage.
    pub(crate) fn flush(&mut self, log: &Snapshot, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let Self { home, lease, file, ahead, .. } = self;
        if lease.is_none() && file.as_ref().is_none_or(|file| !file.is_kept(log)) {
            return Err(home.fault("write", io::Error::other("the session was let go of before")));
        }
        let file = match file {
            Some(file) if file.is_kept(log) && file.named => return Ok(()),
            Some(file) => {
                let _until_synced = ahead.take();
                home.extend(file, log, buffer)?;
                file
            }
            None => file.insert(home.begin(log, buffer)?),
        };
        if !file.named {
            home.disk.sync_names().map_err(|error| home.fault("sync the directory of", error))?;
            file.named = true;
        }
        home.publish(file);
        Ok(())
    }

    /// Lets go of the session.
    pub(crate) fn let_go(&mut self) {
        let Self { home: Home { names, files, sources, .. }, lease, ahead, .. } = self;
        // Another writer of this session can be there only behind the lease.
        if lease.is_some() {
            sources.forget(names.id());
            drop(files.take(names.id()));
            *ahead = None;
            *lease = None;
        }
    }

    /// Lets go of the session, and removes it if it was not there before.
    pub(crate) fn discard(&mut self) -> Result<(), Fault> {
        let Self { home: Home { disk, names, .. }, .. } = self;
        let removable = self.lease.is_some() && !self.opened && self.file.take().is_some();
        let removed = match removable {
            true => disk.remove(&names.log()).and_then(|()| disk.sync_names()),
            false => Ok(()),
        };
        self.let_go();
        removed.map_err(|error| self.home.fault("remove", error))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.let_go();
    }
}

impl OnDisk {
    /// One whose whole lines are those of `log` behind a header of `head` bytes, all on stable storage.
    pub(crate) fn found(identity: (u64, u64), log: &Snapshot, head: u64, bytes: u64) -> Self {
        let synced = Mark { events: log.len(), bytes };
        let mut ends = Ends::default();
        if let Some(last) = log.events().last().filter(|_| log.closed_len() == log.len()) {
            ends.note(synced, last);
        }
        // The process before this one may have died between naming the file and syncing the name.
        Self { identity, head, written: synced, synced, ends, ragged: false, named: false }
    }

    fn empty(identity: (u64, u64), head: u64) -> Self {
        let start = Mark { events: 0, bytes: 0 };
        Self { identity, head, written: start, synced: start, ends: Ends::default(), ragged: false, named: false }
    }

    fn is_kept(&self, log: &Snapshot) -> bool {
        !self.ragged && self.written == self.synced && self.written.events >= log.len()
    }
}

impl Home {
    /// A file appears whole or not at all: whoever finds a child's log finds its stamps in it. So it gets its name last.
    /// What fails here leaves nothing to go on from.
    fn begin(&self, log: &Snapshot, buffer: &mut Vec<u8>) -> Result<OnDisk, Fault> {
        let (unfinished, name) = (self.names.unfinished(), self.names.log());
        let begun = self.write_first(&unfinished, log, buffer).and_then(|(blob, file)| {
            self.disk.finish(&*blob, &unfinished, &name).map_err(|error| self.fault("name", error))?;
            self.files.keep(self.names.id(), blob, false);
            Ok(file)
        });
        if begun.is_err()
            && let Err(error) = self.disk.remove(&unfinished)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(file = unfinished, %error, "an unfinished file could not be removed");
        }
        begun
    }

    fn write_first(
        &self,
        unfinished: &str,
        log: &Snapshot,
        buffer: &mut Vec<u8>,
    ) -> Result<(Box<dyn Blob>, OnDisk), Fault> {
        let doing = |doing| move |error| self.fault(doing, error);
        let blob = self.disk.begin(unfinished).map_err(doing("create"))?;
        buffer.clear();
        serde_json::to_writer(&mut *buffer, &**log.header()).expect("a header serializes to memory");
        buffer.push(b'\n');
        let mut file = OnDisk::empty(blob.as_opened().identity, buffer.len() as u64);
        self.copy_seed(&*blob, &mut file, log, buffer)?;
        self.append_behind(&*blob, &mut file, log, buffer)?;
        blob.sync().map_err(doing("sync"))?;
        file.synced = file.written;
        Ok((blob, file))
    }

    fn extend(&self, file: &mut OnDisk, log: &Snapshot, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        if file.is_kept(log) {
            return Ok(());
        }
        let blob = self.ready(file)?;
        self.append(&*blob, file, log, buffer)?;
        if let Err(error) = blob.sync() {
            // After a failed sync the system may have dropped what it could not write and call the rest clean: a second
            // sync would succeed and prove nothing. So all of it is cut off and written anew by the next flush.
            file.written = file.synced;
            file.ragged = true;
            return Err(self.fault("sync", error));
        }
        file.synced = file.written;
        self.files.keep(self.names.id(), blob, false);
        Ok(())
    }

    /// The file, open, ending where it should.
    fn ready(&self, file: &mut OnDisk) -> Result<Box<dyn Blob>, Fault> {
        let name = self.names.log();
        let found = match self.files.take(self.names.id()) {
            Some(blob) => self.disk.stat(&name).map(|stat| (blob, stat)),
            None => self.disk.open(&name, How::Write).map(|blob| {
                let stat = blob.as_opened();
                (blob, stat)
            }),
        };
        let (blob, stat) = found.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => self.fault("write", tampered("it was removed while the session was open")),
            _ => self.fault("open", error),
        })?;
        if stat.identity != file.identity {
            return Err(self.fault("write", tampered("it was replaced while the session was open")));
        }
        if stat.len < file.written.bytes || stat.len > file.written.bytes && !file.ragged {
            return Err(self.fault("write", tampered("someone else changed its length while the session was open")));
        }
        if file.ragged {
            blob.set_len(file.written.bytes).map_err(|error| self.fault("cut back", error))?;
            file.ragged = false;
        }
        Ok(blob)
    }

    fn append(&self, blob: &dyn Blob, file: &mut OnDisk, log: &Snapshot, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        buffer.clear();
        self.append_behind(blob, file, log, buffer)
    }

    /// Writes what is in `buffer` and the events behind it, a bounded batch at a time.
    fn append_behind(
        &self,
        blob: &dyn Blob,
        file: &mut OnDisk,
        log: &Snapshot,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let (mut events, closed) = (file.written.events, log.closed_len());
        for event in log.events_from(events) {
            event.write(buffer);
            buffer.push(b'\n');
            events += 1;
            if events == closed {
                file.ends.note(Mark { events, bytes: file.written.bytes + buffer.len() as u64 }, event);
            }
            if buffer.len() >= BATCH {
                self.put(blob, file, events, buffer)?;
            }
        }
        if buffer.is_empty() { Ok(()) } else { self.put(blob, file, events, buffer) }
    }

    fn put(&self, blob: &dyn Blob, file: &mut OnDisk, events: u64, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let Mark { bytes, .. } = file.written;
        let end = bytes + buffer.len() as u64;
        if end > MOST_BYTES {
            let limit = format!("a log holds at most {MOST_BYTES} bytes");
            return Err(self.fault("write", io::Error::new(io::ErrorKind::FileTooLarge, limit)));
        }
        if let Err(error) = blob.write_all_at(buffer, bytes) {
            // Half a line may be there now. If it cannot be cut off at once, it is before anything else is written.
            file.ragged = blob.set_len(bytes).is_err();
            return Err(self.fault("write", error));
        }
        buffer.clear();
        file.written = Mark { events, bytes: end };
        Ok(())
    }

    pub(crate) fn fault(&self, doing: &'static str, source: io::Error) -> Fault {
        Fault { doing, place: self.names.place(), source }
    }
}

fn tampered(how: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, how)
}

#[cfg(test)]
mod tests;
