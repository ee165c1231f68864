//! A file system in memory that fails when told to, and forgets like a real one when the power goes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Blob, Disk, How, Leased, Stat};

#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<World>>);

#[derive(Default)]
struct World {
    files: Vec<Contents>,
    /// As programs see them.
    names: BTreeMap<String, usize>,
    /// As the disk has them.
    durable_names: BTreeMap<String, usize>,
    leases: BTreeSet<String>,
    steps: usize,
    plan: Plan,
    dead: bool,
    /// Successful syncs, of files and of names.
    syncs: (usize, usize),
    /// How many bytes went from file to file.
    copied: u64,
    opened: usize,
    copies_wrongly: bool,
}

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
struct Contents {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
    changes: i64,
}

#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Len(u64),
}

struct FakeFile {
    world: Fake,
    file: usize,
    as_opened: Stat,
}

struct FakeLease {
    world: Fake,
    name: String,
}

impl Fake {
    pub(crate) fn planned(plan: Plan) -> Self {
        let fake = Self::default();
        fake.plan(plan);
        fake
    }

    pub(crate) fn plan(&self, plan: Plan) {
        self.lock().plan = plan;
    }

    pub(crate) fn heal(&self) {
        self.plan(Plan::Nothing);
    }

    pub(crate) fn steps(&self) -> usize {
        self.lock().steps
    }

    pub(crate) fn syncs(&self) -> (usize, usize) {
        self.lock().syncs
    }

    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let world = self.lock();
        world.names.get(name).map(|file| world.files[*file].now.clone())
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let mut world = self.lock();
        let contents = Contents { now: bytes.to_vec(), durable: bytes.to_vec(), ..Contents::default() };
        world.files.push(contents);
        let file = world.files.len() - 1;
        world.names.insert(name.to_owned(), file);
        world.durable_names.insert(name.to_owned(), file);
    }

    /// What another program does to a file that it opens.
    pub(crate) fn edit(&self, name: &str, bytes: &[u8]) {
        let mut world = self.lock();
        let file = world.find(name).expect("it is there");
        let changes = [Change::Len(bytes.len() as u64), Change::Write(0, bytes.to_vec())];
        changes.into_iter().for_each(|change| world.files[file].change(change));
    }

    /// How many times a file was opened.
    pub(crate) fn opened(&self) -> usize {
        self.lock().opened
    }

    pub(crate) fn copied(&self) -> u64 {
        self.lock().copied
    }

    /// From now on, or not any more: copying from file to file succeeds and yields something else.
    pub(crate) fn copy_wrongly(&self, wrongly: bool) {
        self.lock().copies_wrongly = wrongly;
    }

    /// The disk as the next process finds it.
    pub(crate) fn reboot(&self, left: Left) -> Self {
        let world = self.lock();
        let names = if left == Left::Synced { &world.durable_names } else { &world.names };
        let next = World {
            files: world.files.iter().map(|contents| contents.left(left)).collect(),
            names: names.clone(),
            // What was in memory only still is, if only the process died.
            durable_names: if left == Left::All { world.durable_names.clone() } else { names.clone() },
            ..World::default()
        };
        Self(Arc::new(Mutex::new(next)))
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl World {
    /// One more step; an error if it is planned to fail.
    fn step(&mut self) -> Result<(), Failure> {
        let step = self.steps;
        self.steps += 1;
        self.dead |= self.plan == Plan::Stop(step);
        match self.plan {
            _ if self.dead => Err(Failure::Refused),
            Plan::Once(at, failure) if at == step => Err(failure),
            Plan::From(at, failure) if at <= step => Err(failure),
            _ => Ok(()),
        }
    }

    fn stat(&self, file: usize) -> Stat {
        let contents = &self.files[file];
        let (len, identity) = (contents.now.len() as u64, (0, file as u64));
        Stat { len, modified: 0, identity, changed: (0, contents.changes) }
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
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
    fn left(&self, left: Left) -> Self {
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

    fn change(&mut self, change: Change) {
        apply(&mut self.now, &change);
        self.unsynced.push(change);
        self.changes += 1;
    }
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Len(len) => bytes.resize(*len as usize, 0),
        Change::Write(offset, written) => {
            let (start, end) = (*offset as usize, *offset as usize + written.len());
            bytes.resize(bytes.len().max(end), 0);
            bytes[start..end].copy_from_slice(written);
        }
    }
}

impl Disk for Fake {
    fn prepare(&self) -> io::Result<()> {
        Ok(self.lock().step()?)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut world = self.lock();
        world.step()?;
        Ok(world.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, how: How) -> io::Result<Box<dyn Blob>> {
        let mut world = self.lock();
        world.step()?;
        let file = match (how, world.find(name)) {
            (How::New, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (How::Read | How::Write, found) => found?,
            (How::Replace, Ok(file)) => {
                world.files[file].change(Change::Len(0));
                file
            }
            (How::New | How::Replace, Err(_)) => {
                world.files.push(Contents::default());
                let file = world.files.len() - 1;
                world.names.insert(name.to_owned(), file);
                file
            }
        };
        world.opened += 1;
        let as_opened = world.stat(file);
        Ok(Box::new(FakeFile { world: self.clone(), file, as_opened }))
    }

    fn stat(&self, name: &str) -> io::Result<Stat> {
        let mut world = self.lock();
        world.step()?;
        let file = world.find(name)?;
        Ok(world.stat(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut world = self.lock();
        world.step()?;
        if world.names.contains_key(to) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = world.find(from)?;
        world.names.remove(from);
        world.names.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut world = self.lock();
        world.step()?;
        world.find(name)?;
        world.names.remove(name);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut world = self.lock();
        world.step()?;
        world.durable_names = world.names.clone();
        world.syncs.1 += 1;
        Ok(())
    }

    fn lease(&self, name: &str) -> io::Result<Leased> {
        let mut world = self.lock();
        world.step()?;
        match world.leases.insert(name.to_owned()) {
            true => Ok(Leased::Mine(Box::new(FakeLease { world: self.clone(), name: name.to_owned() }))),
            false => Ok(Leased::Held(None)),
        }
    }

    fn holder(&self, _: &str) -> Option<u32> {
        None
    }
}

impl Blob for FakeFile {
    fn as_opened(&self) -> Stat {
        self.as_opened
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world.lock();
        world.step()?;
        let from = world.files[self.file].now.get(offset as usize..).unwrap_or(&[]);
        // Never as much as was asked for.
        let count = from.len().min(bytes.len().div_ceil(2));
        bytes[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = self.world.lock();
        let step = world.step();
        let taken = bytes.len().div_ceil(2);
        if step != Err(Failure::Refused) {
            world.files[self.file].change(Change::Write(offset, bytes[..taken].to_vec()));
        }
        step?;
        Ok(taken)
    }

    fn copy_at(&self, offset: u64, source: &dyn Blob, from: u64, len: u64) -> io::Result<u64> {
        let source = (source as &dyn Any).downcast_ref::<Self>().expect("a file of the same disk");
        let bytes = {
            let world = self.world.lock();
            let whole = &world.files[source.file].now;
            let bytes = &whole[whole.len().min(from as usize)..whole.len().min((from + len) as usize)];
            if world.copies_wrongly { vec![b' '; bytes.len()] } else { bytes.to_vec() }
        };
        let count = if bytes.is_empty() { 0 } else { self.write_at(&bytes, offset)? as u64 };
        self.world.lock().copied += count;
        Ok(count)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut world = self.world.lock();
        world.step()?;
        world.files[self.file].change(Change::Len(len));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.world.lock();
        let step = world.step();
        if world.dead {
            return Ok(step?);
        }
        let contents = &mut world.files[self.file];
        for change in std::mem::take(&mut contents.unsynced) {
            match (&step, change) {
                // What could not be written back is gone, and the next sync knows nothing of it.
                (Err(_), Change::Write(offset, bytes)) => {
                    apply(&mut contents.durable, &Change::Write(offset, vec![0; bytes.len()]));
                }
                (_, change) => apply(&mut contents.durable, &change),
            }
        }
        step?;
        world.syncs.0 += 1;
        Ok(())
    }
}

impl Drop for FakeLease {
    fn drop(&mut self) {
        self.world.lock().leases.remove(&self.name);
    }
}
