//! A fork's file begins as a copy of its parent's.
//!
//! What is copied must be what the fork has in memory, whatever happens to the parent's file. So only a session that is
//! leased here is copied from, at a place where this process has written and synced it; the fork must hold the very event
//! that was written there, and events are shared by forks alone; and the file must be as we left it: the same, as long, and
//! not changed since by the system's clock, before the copy and behind it. The first and the last line are compared as well,
//! should a file system copy wrongly. Wherever one of these fails the events are written, as for any other session.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use session::{Event, SessionId, Snapshot};
use session_store::Fault;

use super::{Home, MOST_BYTES, Mark, OnDisk};
use crate::disk::{Blob, How, Stat};

/// The files that forks may copy, by their sessions.
#[derive(Default)]
pub(crate) struct Sources(Mutex<HashMap<SessionId, Source>>);

#[derive(Clone)]
struct Source {
    /// As we left it.
    stat: Stat,
    /// Where the first event begins.
    head: u64,
    ends: Ends,
}

/// Where the last closed turns end: a fork goes up to the last one, and to the one before it if its parent went on
/// before the fork is written.
#[derive(Clone, Default)]
pub(super) struct Ends {
    last: Option<End>,
    before: Option<End>,
}

#[derive(Clone)]
struct End {
    place: Mark,
    /// The last one before it.
    event: Event,
}

impl Ends {
    pub(super) fn note(&mut self, place: Mark, event: &Event) {
        let end = End { place, event: event.clone() };
        match &mut self.last {
            Some(last) if last.place == place => *last = end,
            last => self.before = last.replace(end),
        }
    }

    /// Forgets what lies behind `place`.
    fn cut(&mut self, place: Mark) {
        self.before.take_if(|end| end.place.events > place.events);
        if self.last.take_if(|end| end.place.events > place.events).is_some() {
            self.last = self.before.take();
        }
    }

    /// The longest that is part of a fork's seed.
    fn within(&self, fork: &Snapshot) -> Option<End> {
        let is_within = |end: &&End| {
            let last = end.place.events.checked_sub(1).filter(|seq| *seq < fork.header().seed_length());
            last.and_then(|seq| fork.event(seq)).is_some_and(|event| event.is_same(&end.event))
        };
        [&self.last, &self.before].into_iter().flatten().find(is_within).cloned()
    }
}

impl Sources {
    pub(super) fn forget(&self, session: SessionId) {
        self.lock().remove(&session);
    }

    /// How many events of a session may be copied.
    #[cfg(test)]
    pub(super) fn through(&self, session: SessionId) -> Option<u64> {
        Some(self.lock().get(&session)?.ends.last.as_ref()?.place.events)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Source>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Home {
    /// Says what forks may copy, each time that the file was changed.
    pub(super) fn publish(&self, file: &OnDisk) {
        let mut ends = file.ends.clone();
        ends.cut(file.synced);
        if ends.last.is_none() {
            return;
        }
        if let Ok(stat) = self.disk.stat(&self.names.log()) {
            let source = Source { stat, head: file.head, ends };
            self.sources.lock().insert(self.names.id(), source);
        }
    }

    /// Begins a file that has nothing yet with the header, which is in `buffer`, and the seed, as far as that can be
    /// copied; otherwise does nothing.
    pub(super) fn copy_seed(
        &self,
        blob: &dyn Blob,
        file: &mut OnDisk,
        log: &Snapshot,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(parent) = log.header().lineage().map(|lineage| lineage.parent()) else { return Ok(()) };
        let Some(source) = self.sources.lock().get(&parent).cloned() else { return Ok(()) };
        let Some(end) = source.ends.within(log) else { return Ok(()) };
        let name = self.names.of(parent).log();
        let Ok(parents) = self.disk.open(&name, How::Read) else { return Ok(()) };
        let length = end.place.bytes - source.head;
        if parents.as_opened() != source.stat || file.head + length > MOST_BYTES {
            return Ok(());
        }
        self.put(blob, file, 0, buffer)?;
        let start = file.written.bytes;
        let copied = blob.copy_all_at(start, &*parents, source.head, length);
        let is_good = copied.and_then(|()| {
            Ok(has_lines(blob, start, start + length, log, &end.event)? && self.disk.stat(&name)? == source.stat)
        });
        if matches!(is_good, Ok(true)) {
            file.written = Mark { events: end.place.events, bytes: start + length };
            if file.written.events == log.closed_len() {
                file.ends.note(file.written, &end.event);
            }
            return Ok(());
        }
        tracing::debug!(file = name, error = ?is_good.err(), "the seed of a fork is written, not copied");
        blob.set_len(start).map_err(|error| self.fault("cut back", error))
    }
}

/// Whether the first line from `start` on and the last one before `end` are what they should be.
fn has_lines(blob: &dyn Blob, start: u64, end: u64, log: &Snapshot, last: &Event) -> io::Result<bool> {
    let line = |event: &Event| {
        let mut line = Vec::new();
        event.write(&mut line);
        line.push(b'\n');
        line
    };
    let first = log.event(0).map(line).unwrap_or_default();
    // With the end of the line before it, which may be the header.
    let last = [b"\n", &line(last)[..]].concat();
    let Some(at) = end.checked_sub(last.len() as u64) else { return Ok(false) };
    Ok(blob.read_from(start, first.len())? == first && blob.read_from(at, last.len())? == last)
}

#[cfg(test)]
mod tests;
