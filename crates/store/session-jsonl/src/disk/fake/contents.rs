//! What fails, and what a file holds then.

use std::io;

/// What goes wrong, counted in steps: calls that a disk could refuse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Plan {
    #[default]
    Nothing,
    /// One step fails.
    Once(usize, Failure),
    /// This step and all behind it fail, until healed.
    From(usize, Failure),
    /// The machine stops before this step.
    Stop(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error, with nothing done.
    Refused,
    /// The disk is full. A write takes half of its bytes before it says so.
    Full,
}

/// What a stopped machine still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// What was synced.
    Synced,
    /// That, all names, and half of what was not synced.
    Half,
    /// Everything: only the process died.
    All,
}

#[derive(Clone, Default)]
pub(super) struct Contents {
    pub(super) now: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
    pub(super) changes: i64,
}

#[derive(Clone)]
pub(super) enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused => io::Error::other("planned to fail"),
            Failure::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

impl Contents {
    pub(super) fn left(&self, left: Left) -> Self {
        let mut bytes = self.durable.clone();
        match left {
            Left::All => return self.clone(),
            Left::Synced => {}
            Left::Half => {
                let half = self.unsynced.len().div_ceil(2);
                for (at, change) in self.unsynced[..half].iter().enumerate() {
                    match change {
                        Change::Write(offset, written) if at + 1 == half => {
                            apply(&mut bytes, &Change::Write(*offset, written[..written.len() / 2].to_vec()));
                        }
                        change => apply(&mut bytes, change),
                    }
                }
            }
        }
        Self { now: bytes.clone(), durable: bytes, ..Self::default() }
    }

    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.unsynced.push(change);
        self.changes += 1;
    }
}

pub(super) fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Len(len) => bytes.resize(*len as usize, 0),
        Change::Write(offset, written) => {
            let (start, end) = (*offset as usize, *offset as usize + written.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(written);
        }
    }
}
