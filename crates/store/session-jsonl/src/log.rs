//! The backing of one session: who waits for what, and one job at a time for its writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use context::Boxed;
use session::{Backing, FlushError, Snapshot};
use session_store::Fault;
use tokio::sync::oneshot;

use crate::store::Inner;
use crate::writer::Writer;

/// Keeps one session. Dropping it lets go of the session: at once, or when the work that is queued is done.
pub(crate) struct Kept(Arc<Log>);

struct Log {
    store: Arc<Inner>,
    waiting: Mutex<Waiting>,
    /// Locked for as long as the file is worked on; only jobs lock it, one at a time.
    writer: Mutex<Writer>,
    /// How many events are on stable storage, plus one; 0 before the first flush.
    durable: AtomicU64,
}

type Flushed = Result<(), FlushError>;

/// Who does what is asked for, unless someone is at it already.
enum Doer {
    Pool,
    Asker,
}

/// What the next job does. All that gathers while one is at work is done by the one after it, with one sync.
#[derive(Default)]
struct Waiting {
    /// The longest log that anybody has asked for.
    log: Option<Snapshot>,
    flushes: Vec<oneshot::Sender<Flushed>>,
    closes: Vec<oneshot::Sender<Flushed>>,
    discards: Vec<oneshot::Sender<()>>,
    /// Whether a job is queued or at work.
    scheduled: bool,
}

impl Kept {
    pub(crate) fn new(store: Arc<Inner>, writer: Writer) -> Self {
        let (waiting, writer) = (Mutex::default(), Mutex::new(writer));
        Self(Arc::new(Log { store, waiting, writer, durable: AtomicU64::new(0) }))
    }
}

impl Backing for Kept {
    fn hint(&self, log: &Snapshot) {
        if self.0.durable.load(Ordering::Acquire) > 0 {
            self.0.ask(Doer::Pool, |waiting| waiting.want(log.clone()));
        }
    }

    fn flush(&self, log: Snapshot) -> Boxed<'static, Flushed> {
        if self.0.holds(&log) {
            return Box::pin(std::future::ready(Ok(())));
        }
        let (answer, flushed) = oneshot::channel();
        self.0.ask(Doer::Pool, |waiting| {
            waiting.want(log);
            waiting.flushes.push(answer);
        });
        Box::pin(async { flushed.await.unwrap_or_else(|_| Err(abandoned())) })
    }

    fn close(&self, log: Snapshot) -> Boxed<'static, Flushed> {
        let (answer, closed) = oneshot::channel();
        // Letting go waits for no disk, and whoever drops a session does it himself as well.
        let doer = if self.0.holds(&log) { Doer::Asker } else { Doer::Pool };
        self.0.ask(doer, |waiting| {
            waiting.want(log);
            waiting.closes.push(answer);
        });
        Box::pin(async { closed.await.unwrap_or_else(|_| Err(abandoned())) })
    }

    fn discard(&self) -> Boxed<'static, ()> {
        let (answer, discarded) = oneshot::channel();
        self.0.ask(Doer::Pool, |waiting| waiting.discards.push(answer));
        // An error means that the store is closed or that the work panicked; both were reported.
        Box::pin(async { discarded.await.unwrap_or_default() })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // Jobs keep the log alive; with it, its writer drops the lease.
        let idle = !self.0.lock().scheduled;
        if idle {
            self.0.writer().let_go();
        }
    }
}

impl Waiting {
    fn want(&mut self, log: Snapshot) {
        if self.log.as_ref().is_none_or(|wanted| wanted.len() <= log.len()) {
            self.log = Some(log);
        }
    }

    fn is_empty(&self) -> bool {
        self.log.is_none() && self.flushes.is_empty() && self.closes.is_empty() && self.discards.is_empty()
    }
}

impl Log {
    /// Whether all of it is on stable storage.
    fn holds(&self, log: &Snapshot) -> bool {
        self.durable.load(Ordering::Acquire) > log.len()
    }

    /// Adds to what the next job does, and sees that there is one.
    fn ask(self: &Arc<Self>, doer: Doer, add: impl FnOnce(&mut Waiting)) {
        let mut waiting = self.lock();
        add(&mut waiting);
        if std::mem::replace(&mut waiting.scheduled, true) {
            return;
        }
        drop(waiting);
        match doer {
            Doer::Asker if !self.work(&mut Vec::new()) => return,
            Doer::Asker | Doer::Pool => {}
        }
        let log = self.clone();
        if let Err(error) = self.store.pool.submit(Box::new(move |buffer| log.work_on(buffer))) {
            let refused = std::mem::take(&mut *self.lock());
            // Without a thread of the store, whoever lets go does it here: it takes no waiting.
            if !refused.discards.is_empty() {
                self.discard();
            }
            let message = error.to_string().into();
            refused.answer(&Err(FlushError { message, full: false }));
        }
    }

    /// As a job of the pool.
    fn work_on(self: Arc<Self>, buffer: &mut Vec<u8>) {
        if self.work(buffer) {
            let store = self.store.clone();
            store.pool.resubmit(Box::new(move |buffer| self.work_on(buffer)));
        }
    }

    /// Does everything that waits. Whether there is more by now.
    fn work(&self, buffer: &mut Vec<u8>) -> bool {
        let mut batch = std::mem::replace(&mut *self.lock(), Waiting { scheduled: true, ..Waiting::default() });
        let log = batch.log.take();
        let worked = catch_unwind(AssertUnwindSafe(|| self.bring(log.as_ref(), &batch, buffer)));
        let result = match worked {
            Ok(result) => result.map_err(|fault| refusal(&fault)),
            Err(_) => Err(FlushError { message: "an event could not be written as JSON".into(), full: false }),
        };
        if !batch.closes.is_empty() && result.is_ok() {
            self.writer().let_go();
        }
        if !batch.discards.is_empty() {
            self.discard();
        }
        let more = {
            let mut waiting = self.lock();
            waiting.scheduled = !waiting.is_empty();
            waiting.scheduled
        };
        // Whoever is answered may drop the session and open it again: by now that finds no work.
        batch.answer(&result);
        more
    }

    fn bring(&self, log: Option<&Snapshot>, batch: &Waiting, buffer: &mut Vec<u8>) -> Result<(), Fault> {
        let Some(log) = log else { return Ok(()) };
        let mut writer = self.writer();
        // Nothing ever happened in it: there is nothing to keep.
        let untouched = writer.is_fresh() && log.is_empty() && batch.flushes.is_empty();
        if untouched {
            return Ok(());
        }
        if batch.flushes.is_empty() && batch.closes.is_empty() {
            // Nobody waits: the next flush tries again and says what is wrong.
            if let Err(fault) = writer.write_ahead(log, buffer) {
                tracing::debug!(%fault, "writing ahead failed");
            }
            return Ok(());
        }
        writer.flush(log, buffer)?;
        self.durable.fetch_max(log.len() + 1, Ordering::AcqRel);
        Ok(())
    }

    fn discard(&self) {
        self.durable.store(0, Ordering::Release);
        if let Err(fault) = self.writer().discard() {
            tracing::error!(%fault, "a session that never was has left its log");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Whoever does not listen any more need not be told.
    fn answer(self, result: &Flushed) {
        for waiter in self.flushes.into_iter().chain(self.closes) {
            drop(waiter.send(result.clone()));
        }
        for waiter in self.discards {
            let (Ok(()) | Err(())) = waiter.send(());
        }
    }
}

fn refusal(fault: &Fault) -> FlushError {
    FlushError { message: fault.to_string().into(), full: fault.is_full() }
}

fn abandoned() -> FlushError {
    FlushError { message: "the work on it was abandoned".into(), full: false }
}
