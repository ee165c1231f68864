//! A file system in memory that fails when told to, and forgets like a real one when the power goes.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Blob, Disk, How, Leased, Stat};

mod contents;

use contents::{Change, Contents, apply};
pub(crate) use contents::{Failure, Left, Plan};

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
    /// Whether it has no files without a name.
    names_all: bool,
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

    /// One whose files all have names.
    pub(crate) fn naming_all(self) -> Self {
        self.lock().names_all = true;
        self
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
            names_all: world.names_all,
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

    fn make(&mut self) -> usize {
        self.files.push(Contents::default());
        self.files.len() - 1
    }

    fn find(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
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
            (How::New, Err(_)) => {
                let file = world.make();
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

    fn begin(&self, unfinished: &str) -> io::Result<Box<dyn Blob>> {
        let mut world = self.lock();
        world.step()?;
        let file = match world.find(unfinished) {
            Ok(file) if world.names_all => {
                world.files[file].change(Change::Len(0));
                file
            }
            _ => world.make(),
        };
        if world.names_all {
            world.names.insert(unfinished.to_owned(), file);
        }
        world.opened += 1;
        let as_opened = world.stat(file);
        Ok(Box::new(FakeFile { world: self.clone(), file, as_opened }))
    }

    fn finish(&self, begun: &dyn Blob, unfinished: &str, name: &str) -> io::Result<()> {
        let begun = (begun as &dyn Any).downcast_ref::<FakeFile>().expect("a file of this disk").file;
        let mut world = self.lock();
        world.step()?;
        if world.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if world.names_all {
            assert_eq!(world.find(unfinished)?, begun);
            world.names.remove(unfinished);
        }
        world.names.insert(name.to_owned(), begun);
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
