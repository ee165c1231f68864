use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use session::{Session, SessionId, Sessions, Vocabulary};
use session_store::{
    Busy, CreateError, Fault, ListError, NotFound, OpenError, Opened, ReadError, Reading, RemoveError, Repair, Row,
    SessionStore, Summary,
};
use tokio::sync::oneshot;

use crate::disk::{Blob, Disk, Folder, How, Lease, Leased};
use crate::log::Kept;
use crate::names::Names;
use crate::pool::Pool;
use crate::reading::{self, Whole};
use crate::sweep::sweep;
use crate::writer::{Home, OnDisk, OpenFiles, Sources, Writer};

/// Keeps sessions in a directory, which is made (for its owner alone) when the first session is created.
pub struct JsonlStore(Arc<Inner>);

pub(crate) struct Inner {
    folder: Arc<Path>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) pool: Pool,
    files: Arc<OpenFiles>,
    sources: Arc<Sources>,
    swept: AtomicBool,
}

impl JsonlStore {
    /// A store in `folder`. Touches nothing yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let disk = Arc::new(Folder::new(folder.clone()));
        Self::on(folder, disk)
    }

    pub(crate) fn on(folder: PathBuf, disk: Arc<dyn Disk>) -> Self {
        let (files, sources, swept) = (Arc::default(), Arc::default(), AtomicBool::new(false));
        Self(Arc::new(Inner { folder: folder.into(), disk, pool: Pool::new(), files, sources, swept }))
    }

    /// The file that holds a session, or would.
    pub fn path(&self, id: SessionId) -> PathBuf {
        self.0.folder.join(self.0.names(id).log())
    }

    /// Finishes what is queued and joins the threads. Sessions that are still open can no longer be flushed; dropping
    /// them lets go of them.
    pub async fn close(&self) {
        self.0.pool.close().await;
        self.0.disk.close();
    }

    /// Keeps one of the threads busy.
    #[cfg(test)]
    pub(crate) fn occupy(&self, work: impl FnOnce() + Send + 'static) {
        self.0.pool.submit(Box::new(|_| work())).expect("the store is open");
    }

    /// Runs `work` where waiting for the disk is allowed. Dropping the future forgoes the answer, not the work.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Arc<Inner>) -> T + Send + 'static) -> Result<T, Fault> {
        let (answer, worked) = oneshot::channel();
        let inner = self.0.clone();
        let job = move |_: &mut Vec<u8>| drop(answer.send(work(&inner)));
        let fault = |source| Fault { doing: "use", place: self.0.folder.display().to_string(), source };
        self.0.pool.submit(Box::new(job)).map_err(fault)?;
        worked.await.map_err(|_| fault(io::Error::other("the work panicked")))
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn create(&self, session: &Session) -> Result<(), CreateError> {
        // Here, and not on a thread of its own: like letting go, it waits for no disk.
        let kept = self.0.create(session.id())?;
        Ok(session.attach(Arc::new(kept))?)
    }

    async fn open(&self, sessions: &Arc<Sessions>, id: SessionId) -> Result<Opened, OpenError> {
        let sessions = sessions.clone();
        self.run(move |inner| inner.open(&sessions, id)).await?
    }

    async fn read(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Reading, ReadError> {
        let vocabulary = vocabulary.clone();
        self.run(move |inner| inner.read(&vocabulary, id)).await?
    }

    async fn summary(&self, vocabulary: &Arc<Vocabulary>, id: SessionId) -> Result<Summary, ReadError> {
        let vocabulary = vocabulary.clone();
        self.run(move |inner| reading::summary(&*inner.disk, &inner.names(id), &vocabulary, true)).await?
    }

    async fn list(&self, vocabulary: &Arc<Vocabulary>) -> Result<Vec<Row>, ListError> {
        let vocabulary = vocabulary.clone();
        Ok(self.run(move |inner| inner.list(&vocabulary)).await??)
    }

    async fn remove(&self, id: SessionId) -> Result<(), RemoveError> {
        self.run(move |inner| inner.remove(id)).await?
    }

    fn place(&self, id: SessionId) -> String {
        self.0.names(id).place()
    }
}

impl Inner {
    fn create(self: &Arc<Self>, id: SessionId) -> Result<Kept, CreateError> {
        let names = self.names(id);
        let lease = match self.lease(&names) {
            Err(fault) if fault.source.kind() == io::ErrorKind::NotFound => {
                self.disk.prepare().map_err(|source| self.fault("make", source))?;
                self.lease(&names)?
            }
            leased => leased?,
        };
        let lease = lease.map_err(CreateError::Busy)?;
        match self.disk.stat(&names.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Ok(_) => return Err(CreateError::Exists { place: names.place() }),
            Err(source) => return Err(Fault { doing: "look for", place: names.place(), source }.into()),
        }
        Ok(Kept::new(self.clone(), Writer::fresh(self.home(names), lease)))
    }

    fn open(self: &Arc<Self>, sessions: &Arc<Sessions>, id: SessionId) -> Result<Opened, OpenError> {
        let names = self.names(id);
        // Looked for first: the lock file of a session that is not there would be left by a crash.
        reading::open(&*self.disk, &names, How::Read)?;
        let lease = self.lease(&names)?.map_err(OpenError::Busy)?;
        let blob = reading::open(&*self.disk, &names, How::Write)?;
        let Whole { decoded, head, bytes, torn } = reading::whole(&*blob, &names, &sessions.vocabulary())?;
        let log = decoded.log().clone();
        let mut opened =
            Opened::resume(sessions, decoded).map_err(|error| OpenError::resuming(names.place(), error))?;
        let home = self.home(names);
        if !torn.is_empty() {
            let time = sessions.now();
            let moved_to = put_aside(&home, &*blob, bytes, &torn, time)?;
            opened.repairs.insert(0, Repair::TornTail { bytes: torn.len() as u64, moved_to });
        }
        // What a killed process wrote may be in memory only. Nothing is built on it before it is not.
        blob.sync().map_err(|error| home.fault("sync", error))?;
        let file = OnDisk::found(blob.as_opened().identity, &log, head, bytes);
        let writer = Writer::opened(home, lease, file);
        let kept = Arc::new(Kept::new(self.clone(), writer));
        opened.session.attach(kept).expect("a session that was just resumed is kept nowhere");
        Ok(opened)
    }

    fn read(&self, vocabulary: &Vocabulary, id: SessionId) -> Result<Reading, ReadError> {
        let names = self.names(id);
        let blob = reading::open(&*self.disk, &names, How::Read)?;
        let Whole { decoded, torn, .. } = reading::whole(&*blob, &names, vocabulary)?;
        let holder = self.disk.holder(&names.lock());
        Ok(Reading { decoded, torn: torn.len() as u64, holder })
    }

    fn list(&self, vocabulary: &Vocabulary) -> Result<Vec<Row>, Fault> {
        let all = match self.disk.names() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            all => all.map_err(|source| self.fault("list", source))?,
        };
        let mut ids: Vec<SessionId> = all.iter().filter_map(|name| Names::id_of_log(name)).collect();
        let mut locked: Vec<SessionId> = all.iter().filter_map(|name| Names::id_of_lock(name)).collect();
        ids.sort_unstable();
        locked.sort_unstable();
        let rows = ids.into_iter().filter_map(|id| {
            let locked = locked.binary_search(&id).is_ok();
            match reading::summary(&*self.disk, &self.names(id), vocabulary, locked) {
                // Discarded since the directory was read.
                Err(ReadError::NotFound(_)) => None,
                found => Some(Row { id, found }),
            }
        });
        Ok(rows.collect())
    }

    fn remove(self: &Arc<Self>, id: SessionId) -> Result<(), RemoveError> {
        let names = self.names(id);
        let missing = || NotFound { id, place: names.place() };
        let fault = |doing| move |source| Fault { doing, place: self.names(id).place(), source };
        // Looked for first: the lock file of a session that is not there would be left by a crash.
        match self.disk.stat(&names.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing().into()),
            found => _ = found.map_err(fault("look for"))?,
        }
        let _lease = self.lease(&names)?.map_err(RemoveError::Busy)?;
        match self.disk.remove(&names.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing().into()),
            removed => removed.and_then(|()| self.disk.sync_names()).map_err(fault("remove"))?,
        }
        Ok(())
    }

    fn lease(self: &Arc<Self>, names: &Names) -> Result<Result<Lease, Busy>, Fault> {
        if !self.swept.swap(true, Ordering::Relaxed) {
            let inner = self.clone();
            // A closed store need not be tidy.
            drop(self.pool.submit(Box::new(move |_| sweep(&*inner.disk, |id| inner.names(id)))));
        }
        let lock = names.lock();
        match self.disk.lease(&lock) {
            Ok(Leased::Mine(lease)) => Ok(Ok(lease)),
            Ok(Leased::Held(holder)) => Ok(Err(Busy { id: names.id(), holder })),
            Err(source) => Err(Fault { doing: "lock", place: names.place_of(&lock), source }),
        }
    }

    fn home(&self, names: Names) -> Home {
        Home { disk: self.disk.clone(), names, files: self.files.clone(), sources: self.sources.clone() }
    }

    fn names(&self, id: SessionId) -> Names {
        Names::new(self.folder.clone(), id)
    }

    fn fault(&self, doing: &'static str, source: io::Error) -> Fault {
        Fault { doing, place: self.folder.display().to_string(), source }
    }
}

/// How many names are tried for torn bytes.
const NAMES_TRIED: u64 = 1_000;

/// Moves what is behind the last line into a file of its own. A crash in between leaves it in both.
fn put_aside(home: &Home, blob: &dyn Blob, lines: u64, torn: &[u8], time: u64) -> Result<String, Fault> {
    let fault = |doing, name: &str| {
        let place = home.names.place_of(name);
        move |source| Fault { doing, place, source }
    };
    let mut name = home.names.torn(time);
    let mut aside = home.disk.open(&name, How::New);
    for later in 1..NAMES_TRIED {
        if !matches!(&aside, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
        name = home.names.torn(time.saturating_add(later));
        aside = home.disk.open(&name, How::New);
    }
    let aside = aside.map_err(fault("create", &name))?;
    let written = aside.write_all_at(torn, 0).and_then(|()| aside.sync()).and_then(|()| home.disk.sync_names());
    if let Err(error) = written {
        if let Err(error) = home.disk.remove(&name) {
            tracing::warn!(file = name, %error, "an unfinished file could not be removed");
        }
        return Err(fault("write", &name)(error));
    }
    blob.set_len(lines).map_err(|error| home.fault("cut back", error))?;
    Ok(home.names.place_of(&name))
}
