//! Several processes: this test binary runs itself.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use session::{Session, SessionId, Sessions};
use session_jsonl::JsonlStore;
use session_store::{Busy, OpenError, SessionStore};

use super::{Place, lines, title};

const ROLE: &str = "SESSION_JSONL_TEST_ROLE";
const FOLDER: &str = "SESSION_JSONL_TEST_FOLDER";
const SESSION: &str = "SESSION_JSONL_TEST_SESSION";

/// Another process, killed with `kill -9` when it is dropped.
struct Other {
    process: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(role: &str, folder: &Path, session: Option<SessionId>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("a process knows its program"));
        command.args(["process::as_another_process", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(FOLDER, folder);
        command.env(SESSION, session.map(|id| id.to_string()).unwrap_or_default());
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the test can run itself");
        let said = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Self { process, said }
    }

    /// The rest of the next line that begins with `what`; `None` when it has ended without one.
    fn hear(&mut self, what: &str) -> Option<String> {
        // The harness around the test writes to the same pipe, and may not end its line.
        let rest = |line: std::io::Result<String>| Some(line.ok()?.split_once(what)?.1.trim().to_owned());
        self.said.by_ref().find_map(rest)
    }

    fn kill(&mut self) {
        self.process.kill().expect("it is a child of ours");
        self.process.wait().expect("it is a child of ours");
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.kill();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the other end listens");
}

/// Not a test: what another process does, if this is one.
#[tokio::test]
async fn as_another_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var(FOLDER).expect("it is given");
    let store = JsonlStore::new(folder);
    let sessions = Sessions::new();
    let named = std::env::var(SESSION).expect("it is given").parse::<SessionId>();
    match &*role {
        "append" => append_for_ever(&store, &sessions, named.ok()).await,
        "hold" => {
            let opened = store.open(&sessions, named.expect("a session is given")).await.expect("nobody has it");
            say("holding ");
            std::future::pending::<()>().await;
            drop(opened);
        }
        "many" => hold_many(&store, &sessions).await,
        other => panic!("no role named `{other}`"),
    }
}

/// Appends ever larger batches, sometimes enough to be written ahead, and says what is durable.
async fn append_for_ever(store: &JsonlStore, sessions: &Arc<Sessions>, named: Option<SessionId>) {
    let session = match named {
        Some(id) => store.open(sessions, id).await.expect("the last one was killed").session,
        None => {
            let session = sessions.create("/home/me/project");
            store.create(&session).await.expect("a new session can be kept");
            session
        }
    };
    say(&format!("session {}", session.id()));
    for round in 0.. {
        let batch = if round % 16 == 15 { 1_500 } else { round % 7 + 1 };
        (0..batch).for_each(|n| title(&session, n));
        let len = session.len();
        session.flush().await.expect("it can be written");
        say(&format!("durable {len}"));
    }
}

const MANY: usize = 1_000;

async fn hold_many(store: &JsonlStore, sessions: &Arc<Sessions>) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(1_024), ..limit }).expect("a limit may be lowered");
    let all: Vec<Session> = (0..MANY).map(|_| sessions.create("/home/me/project")).collect();
    for session in &all {
        store.create(session).await.expect("its lock is the only file it keeps open");
    }
    for events in [1, 520] {
        // Enough to be written ahead, which keeps some files open until the flush.
        all.iter().for_each(|session| (0..events).for_each(|n| title(session, n)));
        let flushes: Vec<_> = all.iter().map(Session::flush).collect();
        futures_util::future::join_all(flushes)
            .await
            .into_iter()
            .for_each(|flushed| flushed.expect("it can be written"));
    }
    let listed = store.list(&sessions.vocabulary()).await.expect("it can be listed");
    let readable = listed.iter().filter(|row| row.found.as_ref().is_ok_and(|found| found.holder.is_some())).count();
    for session in &all {
        session.release().await.expect("it can be written");
    }
    say(&format!("held {readable}"));
}

// D-49
#[tokio::test]
async fn whatever_was_acknowledged_survives_kill_9() {
    let place = Place::new();
    let folder = place.home.path().join("sessions");
    let mut named: Option<SessionId> = None;
    let mut seen = Vec::new();
    for round in 0..20_u64 {
        let mut other = Other::start("append", &folder, named);
        let id = other.hear("session ").expect("it says which").parse().expect("it is an id");
        named = Some(id);
        // A different instant each time: after some acknowledgements and some part of the next.
        let mut acknowledged = seen.len() as u64;
        for _ in 0..1 + round * 5 % 37 {
            acknowledged = other.hear("durable ").expect("it goes on").parse().expect("it is a number");
        }
        (0..round * 9_973 % 40_000).for_each(|_| std::hint::spin_loop());
        other.kill();
        while let Some(last) = other.hear("durable ") {
            acknowledged = last.parse().expect("it is a number");
        }
        let opened = place.store.open(&place.sessions, id).await.expect("its lease died with it");
        let log = opened.session.snapshot();
        assert!(log.len() >= acknowledged, "{} of {acknowledged} events", log.len());
        let all = lines(&log);
        assert_eq!(all[..seen.len()], seen, "what was there stays as it was");
        title(&opened.session, 0);
        opened.session.release().await.expect("it can be written");
        seen = lines(&opened.session.snapshot());
    }
}

// D-50
#[tokio::test]
async fn another_process_is_named_and_its_death_frees() {
    let place = Place::new();
    let session = place.released().await;
    let mut other = Other::start("hold", &place.home.path().join("sessions"), Some(session.id()));
    other.hear("holding ").expect("it has it");
    let holder = Some(other.process.id());
    match place.store.open(&place.sessions, session.id()).await {
        Err(OpenError::Busy(busy)) => {
            assert_eq!(busy, Busy { id: session.id(), holder });
            assert!(busy.to_string().ends_with(&format!("is open in process {}", other.process.id())), "{busy}");
        }
        other => panic!("{other:?}"),
    }
    let read = place.store.read(&place.sessions.vocabulary(), session.id()).await.expect("readers are not in the way");
    assert_eq!((read.holder, lines(read.decoded.log())), (holder, lines(&session.snapshot())));
    other.kill();
    let read = place.store.read(&place.sessions.vocabulary(), session.id()).await.expect("it is there");
    assert_eq!(read.holder, None, "a lock file without a process says nothing");
    let opened = place.store.open(&place.sessions, session.id()).await.expect("the death of its holder freed it");
    drop(opened);
    assert_eq!(place.names().len(), 1, "no lock is left");
}

#[test]
fn a_thousand_sessions_fit_the_usual_limit_of_open_files() {
    let _deadline = super::Deadline::start();
    let home = tempfile::tempdir().expect("a temporary directory can be made");
    let mut other = Other::start("many", &home.path().join("sessions"), None);
    assert_eq!(other.hear("held ").as_deref(), Some("1000"));
}
