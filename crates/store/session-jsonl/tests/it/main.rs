//! The store, as an app has it, on a real disk.

mod contract;
mod files;
mod process;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use session::{Session, SessionTitle, Sessions, Snapshot};
use session_jsonl::JsonlStore;
use session_store::SessionStore;
use tempfile::TempDir;

/// A directory of its own, and a store in it.
struct Place {
    home: TempDir,
    store: JsonlStore,
    sessions: Arc<Sessions>,
    _deadline: Deadline,
}

/// Ends the process, with all that hangs in it, unless it is dropped in time.
struct Deadline(#[expect(dead_code, reason = "dropped to be heard")] mpsc::Sender<()>);

impl Deadline {
    fn start() -> Self {
        let (alive, over) = mpsc::channel();
        std::thread::spawn(move || {
            if over.recv_timeout(Duration::from_secs(240)) == Err(mpsc::RecvTimeoutError::Timeout) {
                std::process::abort();
            }
        });
        Self(alive)
    }
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory can be made");
        let store = JsonlStore::new(home.path().join("sessions"));
        Self { home, store, sessions: Sessions::new(), _deadline: Deadline::start() }
    }

    async fn begin(&self) -> Session {
        let session = self.sessions.create("/home/me/project");
        self.store.create(&session).await.expect("a new session can be kept");
        session
    }

    /// A session with a few events, which nobody has open.
    async fn released(&self) -> Session {
        let session = self.begin().await;
        (0..3).for_each(|n| title(&session, n));
        session.release().await.expect("it can be written");
        session
    }

    /// Everything in the directory, by name.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.home.path().join("sessions")).expect("the store has made it");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("it can be read").file_name().into_string().expect("names are UTF-8")
        };
        // But for the lock that the store keeps for its next session.
        let spare = format!("spare-{}.lock", std::process::id());
        let mut names: Vec<String> = entries.map(name).filter(|name| *name != spare).collect();
        names.sort();
        names
    }
}

fn title(session: &Session, n: usize) {
    session.append(SessionTitle { title: format!("{n}").into(), source: "user".into() }).expect("the session is open");
}

fn lines(log: &Snapshot) -> Vec<String> {
    log.events().iter().map(|event| event.to_json()).collect()
}
