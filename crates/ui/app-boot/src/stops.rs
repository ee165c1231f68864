//! What stops a command early: a signal, or the time that it was given.

use std::future;
use std::io;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long the end of what was stopped may take: longer than any of its parts is given.
const PATIENCE: Duration = Duration::from_secs(40);

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C.
    Interrupted,
    /// A polite request to end, or a terminal that is gone.
    Terminated,
    /// The time that it was given is over.
    TimedOut,
}

/// Listens from when it is made, so that no signal is lost while an app is put together. The first signal is told to
/// whoever waits; the second ends the process at once, whatever it is held up by. A terminal that goes away says so more than
/// once, so that does not count as a second; and whoever ignores it, as under `nohup`, goes on doing so.
#[derive(Clone, Debug)]
pub struct Stops {
    first: watch::Receiver<Option<Stop>>,
    over: Option<Instant>,
}

impl Stops {
    /// Listens on a thread of its own that ends with the process, and ends the process with `quit` at the second signal.
    /// A timeout begins with [`Stops::give`].
    pub fn listen(quit: i32) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (interrupt, terminate, hangup) = {
            let _within = runtime.enter();
            let hangup = if hangup_is_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, hangup)
        };
        let (tell, first) = watch::channel(None);
        let listening = async move {
            let (mut interrupt, mut terminate, mut hangup) = (interrupt, terminate, hangup);
            let first = tokio::select! {
                stop = either(&mut interrupt, &mut terminate) => stop,
                () = hung_up(&mut hangup) => Stop::Terminated,
            };
            // Nobody may be waiting for it.
            let _ = tell.send(Some(first));
            either(&mut interrupt, &mut terminate).await;
            // Everything up to the last checkpoint is on disk.
            std::process::exit(quit)
        };
        thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listening))?;
        Ok(Self { first, over: None })
    }

    /// Gives what begins now this long.
    #[must_use]
    pub fn give(self, time: Option<Duration>) -> Self {
        // A time that no clock can count to is never over.
        Self { over: time.and_then(|time| Instant::now().checked_add(time)), ..self }
    }

    /// Returns when it is to be stopped, and at once if it already is. May be dropped and asked again.
    pub async fn stopped(&self) -> Stop {
        let mut first = self.first.clone();
        let signalled = async {
            match first.wait_for(Option::is_some).await.map(|stop| *stop) {
                Ok(Some(stop)) => stop,
                // The thread lives as long as the process.
                Ok(None) | Err(_) => future::pending().await,
            }
        };
        let over = async {
            match self.over {
                Some(over) => tokio::time::sleep_until(over).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            stop = signalled => stop,
            () = over => Stop::TimedOut,
        }
    }

    /// What was stopped ends now, with this status, whatever holds it up: a reader of our output that does not read, a
    /// server that never stops sending. To be called once a command begins to save; one that ends in time never notices.
    pub fn end_for_certain(&self, status: i32) -> io::Result<()> {
        let end = move || {
            thread::sleep(PATIENCE);
            // Everything up to the last checkpoint is on disk.
            std::process::exit(status)
        };
        thread::Builder::new().name("end".into()).spawn(end).map(drop)
    }
}

async fn hung_up(hangup: &mut Option<Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => future::pending().await,
    }
}

/// Whether whoever started this process had it ignore the end of its terminal. Told where the system has a `/proc`.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> Stop {
    tokio::select! {
        _ = interrupt.recv() => Stop::Interrupted,
        _ = terminate.recv() => Stop::Terminated,
    }
}
