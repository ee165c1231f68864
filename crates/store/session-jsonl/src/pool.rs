//! The few threads on which all work on files runs.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

/// Work, and the buffer of the thread that does it.
pub(crate) type Job = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

/// More threads than processors: they wait for the disk, and what they wait for together the disk does together. With
/// six, a hundred children at once are kept in three quarters of the time that four need.
pub(crate) const THREADS: usize = 6;
/// What a thread keeps of its buffer from one job to the next.
const KEPT_BUFFER: usize = 2 << 20;

/// Threads that are started when there is work, and joined by [`Pool::close`] or at the latest by the drop.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    alive: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    closing: bool,
}

impl Pool {
    pub(crate) fn new() -> Self {
        let shared = Shared { state: Mutex::default(), work: Condvar::new(), alive: watch::Sender::new(0) };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// Queues work. An error means that it will not run.
    pub(crate) fn submit(&self, job: Job) -> io::Result<()> {
        let mut state = self.shared.lock();
        if state.closing {
            return Err(io::Error::other("the session store is closed"));
        }
        if state.idle <= state.jobs.len() && state.threads < THREADS {
            match self.start(state.threads) {
                Ok(()) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error),
                Err(error) => tracing::warn!(%error, "the session store works with fewer threads"),
            }
        }
        state.jobs.push_back(job);
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }

    /// Queues what remains of a job, also while closing. For jobs only: their thread will come back for it.
    pub(crate) fn resubmit(&self, job: Job) {
        self.shared.lock().jobs.push_back(job);
        self.shared.work.notify_one();
    }

    /// Takes no more work, finishes what is queued, and joins the threads.
    pub(crate) async fn close(&self) {
        let mut alive = self.shared.alive.subscribe();
        self.shared.stop();
        // Never fails: the sender is ours.
        drop(alive.wait_for(|alive| *alive == 0).await);
        self.join();
    }

    fn start(&self, number: usize) -> io::Result<()> {
        let shared = self.shared.clone();
        self.shared.alive.send_modify(|alive| *alive += 1);
        let started = thread::Builder::new().name(format!("session-jsonl-{number}")).spawn(move || shared.run());
        match started {
            Ok(thread) => {
                self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
                Ok(())
            }
            Err(error) => {
                self.shared.alive.send_modify(|alive| *alive -= 1);
                Err(error)
            }
        }
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last session of a store may be dropped by a job.
            if thread.thread().id() != thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the session store panicked");
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop();
        self.join();
    }
}

impl Shared {
    fn run(&self) {
        let mut buffer = Vec::new();
        while let Some(job) = self.next() {
            if catch_unwind(AssertUnwindSafe(|| job(&mut buffer))).is_err() {
                tracing::error!("work on a session's file panicked");
            }
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER);
        }
        self.alive.send_modify(|alive| *alive -= 1);
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.closing {
                return None;
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn stop(&self) {
        self.lock().closing = true;
        self.work.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_panic_takes_no_thread_and_closing_finishes_what_is_queued() {
        let pool = Pool::new();
        let (done, all) = mpsc::channel();
        for n in 0..100 {
            let done = done.clone();
            let job = move |_: &mut Vec<u8>| {
                done.send(n).expect("the test listens");
                assert!(n % 10 != 0, "every tenth panics");
            };
            pool.submit(Box::new(job)).expect("the pool is open");
        }
        pool.close().await;
        let mut all: Vec<_> = all.try_iter().collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        assert!(pool.submit(Box::new(|_| ())).is_err());
        pool.close().await;
    }

    #[test]
    fn a_pool_may_be_dropped_by_its_own_job() {
        let pool = Arc::new(Pool::new());
        let (dropped, seen) = mpsc::channel();
        let (go, gone) = mpsc::channel::<()>();
        let own = pool.clone();
        let job = move |_: &mut Vec<u8>| {
            gone.recv().expect("the test says when");
            drop(own);
            dropped.send(()).expect("the test listens");
        };
        pool.submit(Box::new(job)).expect("the pool is open");
        drop(pool);
        go.send(()).expect("the job waits");
        seen.recv_timeout(std::time::Duration::from_secs(10)).expect("the drop does not wait for itself");
    }
}
