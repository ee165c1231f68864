//! What it costs to keep a session: appending and flushing, the life of a child, forks, opening, listing.
#![expect(clippy::print_stdout, reason = "a bench prints its rows")]

#[path = "../../../core/session/benches/common/bare.rs"]
mod bare;
#[path = "../../../core/session/benches/common/mod.rs"]
mod common;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bare::parse_bare;
use common::*;
use session::*;
use session_jsonl::JsonlStore;
use session_store::SessionStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const WRITES: &str = "the disk works";
const ROUNDS: usize = 20;

/// What this program does when it runs itself: opens a session as a process that has just begun.
const COLD: &str = "--cold";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [COLD, folder, id] = &args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return open_cold(Path::new(folder), id.parse().expect("our own id"));
    }
    for (name, measure) in [
        ("flush", flush_once as fn(&Bench)),
        ("turns", flush_every_turn),
        ("children", children),
        ("forks", forks),
        ("open", open),
        ("list", list),
    ] {
        if wanted(name) {
            measure(&Bench::new());
        }
    }
}

struct Bench {
    runtime: Runtime,
    home: TempDir,
    store: JsonlStore,
    house: Arc<Sessions>,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect(WRITES);
        let store = JsonlStore::new(home.path().join("sessions"));
        Self { runtime, home, store, house: Sessions::new() }
    }

    fn session(&self) -> Session {
        let session = self.house.create("/home/me/project");
        self.runtime.block_on(self.store.create(&session)).expect(WRITES);
        session
    }

    fn flush(&self, session: &Session) {
        self.runtime.block_on(session.flush()).expect(WRITES);
    }

    fn remove(&self, session: &Session) {
        self.runtime.block_on(session.discard());
    }

    fn bare_file(&self) -> File {
        let path = self.home.path().join("bare");
        OpenOptions::new().create(true).write(true).truncate(true).open(path).expect(WRITES)
    }
}

/// A session that has been flushed once, as every announced one has, so that it is written ahead.
fn flush_once(bench: &Bench) {
    const EVENTS: u32 = 70_000;
    let sample = bench.house.create("/");
    template_turns(&sample, EVENTS);
    let bytes = lines_of(&sample.snapshot(), 0);
    let ours = || {
        let session = bench.session();
        bench.flush(&session);
        let (took, ()) = timed(|| {
            template_turns(&session, EVENTS);
            bench.flush(&session);
        });
        bench.remove(&session);
        took
    };
    let bare = || {
        let mut file = bench.bare_file();
        timed(|| file.write_all(&bytes).and_then(|()| file.sync_data()).expect(WRITES)).0
    };
    let (ours, bare) = fastest_of(ROUNDS, ours, bare);
    at_least("append + one final flush, JSONL", f64::from(EVENTS) / ours, Unit::PerSecond, 1e6);
    figure("the same ÷ bare write and fdatasync of the bytes", ours / bare, Unit::Ratio);
}

fn flush_every_turn(bench: &Bench) {
    let (session, header) = (bench.session(), request_header());
    template_turn(&session, 1, &header);
    bench.flush(&session);
    let turn = lines_of(&session.snapshot(), 0);
    let mut file = bench.bare_file();
    let ours = || {
        each(50, || {
            template_turn(&session, 1, &header);
            bench.flush(&session);
        })
    };
    let bare = || {
        each(50, || {
            file.write_all(&turn).expect(WRITES);
            file.sync_data().expect(WRITES);
        })
    };
    let (ours, bare) = fastest_of(ROUNDS, ours, bare);
    figure("flush every 7 events", f64::from(TURN) / ours, Unit::PerSecond);
    at_most("flush every 7 events ÷ bare write and fdatasync", ours / bare, Unit::Ratio, 1.3);
}

/// A session from its creation to its release with three checkpoints, and the same system calls bare.
fn children(bench: &Bench) {
    const AT_ONCE: u32 = 100;
    let header = request_header();
    let life = |session: Session| {
        let header = &header;
        async move {
            bench.store.create(&session).await.expect(WRITES);
            for turn in 0..3 {
                template_turn(&session, turn, header);
                session.flush().await.expect(WRITES);
            }
            session.release().await.expect(WRITES);
        }
    };
    let lives = |count: u32| {
        let sessions: Vec<_> = (0..count).map(|_| bench.house.create("/home/me/project")).collect();
        let lives = futures_util::future::join_all(sessions.iter().cloned().map(life));
        let (took, _) = timed(|| bench.runtime.block_on(lives));
        for session in sessions {
            std::fs::remove_file(bench.store.path(session.id())).expect("it was flushed");
        }
        took
    };
    let sample = bench.house.create("/");
    template_turn(&sample, 1, &header);
    let turn = lines_of(&sample.snapshot(), 0);
    let folder = bench.home.path().join("bare-children");
    std::fs::create_dir(&folder).expect(WRITES);
    let bare_lives = |count: u32, threads: u32| {
        let (folder, turn) = (&folder, &turn);
        let mut took = Duration::ZERO;
        std::thread::scope(|scope| {
            let work =
                |thread| move || (thread..count).step_by(threads as usize).for_each(|n| bare_life(folder, n, turn));
            let begun = Instant::now();
            let all: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
            all.into_iter().for_each(|thread| thread.join().expect("no panic"));
            took = begun.elapsed();
        });
        (0..count).for_each(|n| std::fs::remove_file(folder.join(n.to_string())).expect("it was made"));
        took
    };
    let (one, bare) = fastest_of(100, || lives(1), || bare_lives(1, 1));
    figure("a session, three checkpoints, released", one, Unit::Time);
    figure("the same ÷ its fdatasync and directory sync bare", one / bare, Unit::Ratio);
    let (many, bare) = fastest_of(ROUNDS, || lives(AT_ONCE), || bare_lives(AT_ONCE, 4));
    figure("100 of them at once", many, Unit::Time);
    figure("the same ÷ bare on 4 threads", many / bare, Unit::Ratio);
}

/// The durable calls of a child, with as many bytes.
fn bare_life(folder: &Path, name: u32, turn: &[u8]) {
    let (unfinished, finished) = (folder.join(format!("{name}.new")), folder.join(name.to_string()));
    let mut file = File::create_new(&unfinished).expect(WRITES);
    for checkpoint in 0..3 {
        file.write_all(turn).expect(WRITES);
        file.sync_data().expect(WRITES);
        if checkpoint == 0 {
            std::fs::rename(&unfinished, &finished).expect(WRITES);
            File::open(folder).and_then(|folder| folder.sync_all()).expect(WRITES);
        }
    }
}

/// A fork made durable, beside a copy of its parent's file made so.
fn forks(bench: &Bench) {
    for (events, name) in [(10_000, "10,000"), (100_000, "100,000")] {
        let parent = bench.session();
        template_turns(&parent, events);
        bench.flush(&parent);
        let (from, to) = (bench.store.path(parent.id()), bench.home.path().join("copy"));
        let forked = || {
            let delegation = Delegation::capture(&parent).expect("nobody contributes");
            let (took, child) = timed(|| {
                let child = Session::delegated(delegation, Seed::ClosedTurns);
                bench.runtime.block_on(bench.store.create(&child)).expect(WRITES);
                bench.flush(&child);
                child
            });
            bench.remove(&child);
            took
        };
        let copied = || {
            let took = timed(|| {
                std::fs::copy(&from, &to).and_then(|_| File::open(&to)?.sync_data()).expect(WRITES);
                File::open(bench.home.path()).and_then(|folder| folder.sync_all()).expect(WRITES);
            });
            std::fs::remove_file(&to).expect("it was copied");
            took.0
        };
        let (forked, copied) = fastest_of(ROUNDS, forked, copied);
        figure(&format!("durable fork from {name} events"), forked, Unit::Time);
        figure("the same ÷ cp, fdatasync and directory sync", forked / copied, Unit::Ratio);
    }
}

fn open(bench: &Bench) {
    const EVENTS: u32 = 100_000;
    let session = bench.session();
    template_turns(&session, EVENTS);
    bench.runtime.block_on(session.release()).expect(WRITES);
    let (id, path) = (session.id(), bench.store.path(session.id()));
    let folder = path.parent().expect("it is in a directory");
    let cold = fastest(ROUNDS, || {
        let program = std::env::current_exe().expect("a process knows its program");
        let mut command = Command::new(program);
        let command = command.args([COLD, folder.to_str().expect("UTF-8"), &id.to_string()]).stdout(Stdio::piped());
        let begun = Instant::now();
        let mut process = command.spawn().expect("it can run itself");
        let mut said = String::new();
        BufReader::new(process.stdout.take().expect("it is piped")).read_line(&mut said).expect("it says so");
        let took = begun.elapsed();
        assert_eq!(said, format!("{}\n", EVENTS / TURN * TURN));
        assert!(process.wait().expect("it is a child of ours").success());
        took
    });
    at_most("cold resume, 100,000 events, fresh process", cold, Unit::Time, 30e-3);
    let opening = || timed(|| bench.runtime.block_on(bench.store.open(&bench.house, id)).expect("it is sound")).0;
    let bare = || {
        timed(|| {
            let text = std::fs::read_to_string(&path).expect("it was written");
            parse_bare(text.split_once('\n').expect("a header").1);
        })
        .0
    };
    let (opened, bare) = fastest_of(ROUNDS, opening, bare);
    at_most("open ÷ read and bare parse", opened / bare, Unit::Ratio, 1.5);
}

fn open_cold(folder: &Path, id: SessionId) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    let (store, sessions) = (JsonlStore::new(folder), Sessions::new());
    let opened = runtime.block_on(store.open(&sessions, id)).expect("it is sound");
    println!("{}", opened.session.len());
}

fn list(bench: &Bench) {
    const SESSIONS: usize = 1_000;
    let store = JsonlStore::new(bench.home.path().join("many"));
    let vocabulary = bench.house.vocabulary();
    for n in 0..SESSIONS {
        let session = bench.house.create("/home/me/project");
        bench.runtime.block_on(store.create(&session)).expect(WRITES);
        template_turns(&session, if n % 100 == 0 { 35_000 } else { 70 });
        bench.runtime.block_on(session.release()).expect(WRITES);
    }
    let listing = || {
        let (took, rows) = timed(|| bench.runtime.block_on(store.list(&vocabulary)).expect("it can be listed"));
        assert!(rows.len() == SESSIONS && rows.iter().all(|row| row.found.is_ok()));
        took
    };
    let folder = bench.home.path().join("many");
    let bare = || {
        let heads = || {
            for entry in std::fs::read_dir(&folder).expect("it is there") {
                let mut head = vec![0; 16 << 10];
                let file = File::open(entry.expect("it is there").path()).expect("it is there");
                black_box(file.metadata().expect("it is there").len());
                black_box(file.read_at(&mut head, 0).expect("it is there"));
            }
        };
        timed(heads).0
    };
    let (listed, bare) = fastest_of(ROUNDS, listing, bare);
    figure("list 1,000 sessions, some long", listed, Unit::Time);
    figure("the same ÷ open, stat and read 16 KiB of each", listed / bare, Unit::Ratio);
}
