//! What it costs to keep a session: appending and flushing, the life of a child, opening, listing.
//!
//! Prints a table of figures and goals at the end. The disk and the machine are shared and noisy, so ratios against
//! bare system calls of the same run say more than times do.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use llm::{Message, Sampling};
use serde::Deserialize;
use serde_json::value::RawValue;
use session::*;
use session_jsonl::JsonlStore;
use session_store::SessionStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const OPEN: &str = "nobody closes it";
const WRITES: &str = "the disk works";
const TURN: u32 = 7;

fn main() {
    let bench = Bench::new();
    let mut table = Table::new();
    append_and_flush(&bench, &mut table);
    flush_every_turn(&bench, &mut table);
    children(&bench, &mut table);
    open(&bench, &mut table);
    list(&bench, &mut table);
    table.print();
}

struct Bench {
    runtime: Runtime,
    home: TempDir,
    store: JsonlStore,
    house: Arc<Sessions>,
    header: Arc<RequestHeader>,
}

impl Bench {
    fn new() -> Self {
        let runtime = Runtime::new().expect("threads can be started");
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect(WRITES);
        let store = JsonlStore::new(home.path().join("sessions"));
        let header = RequestHeader {
            provider: "script".into(),
            model: "none".into(),
            sampling: Sampling::default(),
            system: "x".repeat(64).into(),
            tools: Arc::default(),
        };
        Self { runtime, home, store, house: Sessions::new(), header: Arc::new(header) }
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

    fn turns(&self, session: &Session, count: u32) {
        (1..=count).for_each(|turn| template_turn(session, turn, &self.header));
    }

    fn bare_file(&self) -> File {
        let path = self.home.path().join("bare");
        OpenOptions::new().create(true).write(true).truncate(true).open(path).expect(WRITES)
    }
}

/// A session that has been flushed once, as every announced one has, so that it is written ahead.
fn append_and_flush(bench: &Bench, table: &mut Table) {
    for events in [70_000, 700_000] {
        let mut bytes = Vec::new();
        let mut round = || {
            let session = bench.session();
            bench.flush(&session);
            let (took, ()) = timed(|| {
                bench.turns(&session, events / TURN);
                bench.flush(&session);
            });
            if bytes.is_empty() {
                bytes = text_of(&session.snapshot(), 0);
            }
            bench.remove(&session);
            took
        };
        let each = table.measure(&format!("flush/once/{events}"), |n| (0..n).map(|_| round()).sum());
        let round = || {
            let mut file = bench.bare_file();
            let written = timed(|| file.write_all(&bytes).and_then(|()| file.sync_data()));
            written.1.expect(WRITES);
            written.0
        };
        let bare = table.measure(&format!("flush/bare/{events}"), |n| (0..n).map(|_| round()).sum());
        table.rate(&format!("append {events} and flush once"), each, events, "≥ 1,000,000 events/s");
        table.ratio("the same ÷ bare write and fdatasync of the bytes", each, bare, "");
    }
}

fn flush_every_turn(bench: &Bench, table: &mut Table) {
    let session = bench.session();
    bench.turns(&session, 1);
    bench.flush(&session);
    let turn = text_of(&session.snapshot(), 0);
    let each = table.measure("flush/every turn", |n| {
        time(n, || {
            bench.turns(&session, 1);
            bench.flush(&session);
        })
    });
    let mut file = bench.bare_file();
    let bare = table.measure("flush/bare", |n| {
        time(n, || {
            file.write_all(&turn).expect(WRITES);
            file.sync_data().expect(WRITES);
        })
    });
    bench.remove(&session);
    table.rate("flush every 7 events", each, TURN, "bounded by the disk");
    table.ratio("flush every 7 ÷ bare write and fdatasync", each, bare, "");
}

/// A session from its creation to its release with three checkpoints, and the same system calls bare.
fn children(bench: &Bench, table: &mut Table) {
    const AT_ONCE: u32 = 100;
    let life = |session: Session| async move {
        bench.store.create(&session).await.expect(WRITES);
        for _ in 0..3 {
            bench.turns(&session, 1);
            session.flush().await.expect(WRITES);
        }
        session.release().await.expect(WRITES);
        session
    };
    let sessions = |count| (0..count).map(|_| bench.house.create("/home/me/project")).collect::<Vec<_>>();
    let lives = |count| {
        let sessions = sessions(count);
        let lives = futures_util::future::join_all(sessions.into_iter().map(life));
        let (took, sessions) = timed(|| bench.runtime.block_on(lives));
        for session in sessions {
            std::fs::remove_file(bench.store.path(session.id())).expect("it was flushed");
        }
        took
    };
    let session = bench.session();
    bench.turns(&session, 1);
    let turn = text_of(&session.snapshot(), 0);
    drop(session);
    let folder = bench.home.path().join("bare-children");
    std::fs::create_dir(&folder).expect(WRITES);
    let directory = File::open(&folder).expect(WRITES);
    let bare_life = |name: u32| {
        let mut file = File::create_new(folder.join(name.to_string())).expect(WRITES);
        for checkpoint in 0..3 {
            file.write_all(&turn).expect(WRITES);
            file.sync_data().expect(WRITES);
            if checkpoint == 0 {
                directory.sync_all().expect(WRITES);
            }
        }
    };
    let bare_lives = |count: u32, threads: u32| {
        let (took, ()) = timed(|| {
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    scope.spawn(move || (0..count).filter(|name| name % threads == thread).for_each(bare_life));
                }
            });
        });
        (0..count).for_each(|name| std::fs::remove_file(folder.join(name.to_string())).expect("it was made"));
        took
    };
    let one = table.measure("child/one", |n| (0..n).map(|_| lives(1)).sum());
    let bare = table.measure("child/bare", |n| (0..n).map(|_| bare_lives(1, 1)).sum());
    table.time("a session, three checkpoints, released".into(), one, "");
    table.ratio("the same ÷ 3 fdatasync and 1 directory sync bare", one, bare, "≤ 1.3");
    let many = table.measure("child/100 at once", |n| (0..n).map(|_| lives(AT_ONCE)).sum());
    let bare = table.measure("child/100 bare, 4 threads", |n| (0..n).map(|_| bare_lives(AT_ONCE, 4)).sum());
    table.time("100 of them at once".into(), many, "");
    table.ratio("the same ÷ bare on 4 threads", many, bare, "≤ 1.3");
}

fn open(bench: &Bench, table: &mut Table) {
    const EVENTS: u32 = 100_000;
    let session = bench.session();
    bench.turns(&session, EVENTS / TURN);
    bench.runtime.block_on(session.release()).expect(WRITES);
    let (id, path) = (session.id(), bench.store.path(session.id()));
    let opened = table.measure("open/cold", |n| {
        let once = || timed(|| bench.runtime.block_on(bench.store.open(&bench.house, id)).expect("it is sound")).0;
        (0..n).map(|_| once()).sum()
    });
    let bare = table.measure("open/bare", |n| {
        time(n, || {
            let text = std::fs::read_to_string(&path).expect("it was written");
            for line in text.lines().skip(1) {
                black_box(serde_json::from_str::<Envelope<'_>>(line).expect("it was written"));
            }
        })
    });
    let vocabulary = bench.house.vocabulary();
    let read = table.measure("open/read", |n| {
        let once = || timed(|| bench.runtime.block_on(bench.store.read(&vocabulary, id)).expect("it is sound")).0;
        (0..n).map(|_| once()).sum()
    });
    table.time(format!("open {EVENTS} events"), opened, "≤ 30 ms with the process");
    table.ratio("open ÷ read and bare parse", opened, bare, "≤ 1.5");
    table.ratio("read ÷ read and bare parse", read, bare, "≤ 1.5");
}

fn list(bench: &Bench, table: &mut Table) {
    const SESSIONS: usize = 1_000;
    let store = JsonlStore::new(bench.home.path().join("many"));
    let vocabulary = bench.house.vocabulary();
    for n in 0..SESSIONS {
        let session = bench.house.create("/home/me/project");
        let kept = bench.runtime.block_on(store.create(&session));
        kept.expect(WRITES);
        bench.turns(&session, if n % 100 == 0 { 5_000 } else { 10 });
        bench.runtime.block_on(session.release()).expect(WRITES);
    }
    let each = table.measure("list/1000", |n| {
        time(n, || {
            let rows = bench.runtime.block_on(store.list(&vocabulary)).expect("it can be listed");
            assert!(rows.len() == SESSIONS && rows.iter().all(|row| row.found.is_ok()));
        })
    });
    let folder = bench.home.path().join("many");
    let bare = table.measure("list/bare", |n| {
        time(n, || {
            for entry in std::fs::read_dir(&folder).expect("it is there") {
                let mut head = vec![0; 16 << 10];
                let file = File::open(entry.expect("it is there").path()).expect("it is there");
                black_box(file.metadata().expect("it is there").len());
                black_box(std::os::unix::fs::FileExt::read_at(&file, &mut head, 0).expect("it is there"));
            }
        })
    });
    table.time(format!("list {SESSIONS} sessions, some long"), each, "headers and first events");
    table.ratio("the same ÷ open, stat and read 16 KiB of each", each, bare, "");
}

/// A line of a log as `serde_json` alone reads it.
#[derive(Deserialize)]
#[expect(dead_code, reason = "parsed to be timed")]
struct Envelope<'a> {
    seq: u64,
    time: u64,
    r#type: &'a str,
    #[serde(default)]
    ignorable: bool,
    #[serde(borrow)]
    data: &'a RawValue,
}

/// Seven events with texts of 64 characters, all made here but for the request header, which a loop shares.
fn template_turn(session: &Session, turn: u32, header: &Arc<RequestHeader>) {
    let step = 1;
    keep(session.append(TurnStart { turn }));
    keep(session.append_with(|seq| UserMessage {
        id: MessageId(seq),
        message: Arc::new(Message::user("x".repeat(64))),
        source: Source::Prompt,
    }));
    keep(session.append(StepStart { turn, step }));
    keep(session.append(RequestHeaderEvent { reason: HeaderReason::Changed, header: header.clone() }));
    let message = Arc::new(Message::assistant("x".repeat(64)));
    keep(session.append(AssistantMessage { turn, step, message, usage: None, interrupted: false }));
    keep(session.append(StepEnd { turn, step }));
    keep(session.append(TurnEnd { turn, reason: TurnReason::Completed }));
}

fn keep(appended: Result<u64, Closed>) {
    black_box(appended.expect(OPEN));
}

fn text_of(log: &Snapshot, from: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for event in log.events_from(from) {
        event.write(&mut text);
        text.push(b'\n');
    }
    text
}

fn time(n: u64, mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..n).for_each(|_| work());
    begun.elapsed()
}

/// Dropped outside the clock, by the caller.
fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed(), made)
}

/// Criterion does the measuring; this keeps the medians, for ratios and for the table.
struct Table {
    criterion: Criterion,
    rows: Vec<[String; 3]>,
}

impl Table {
    const SAMPLES: usize = 20;

    fn new() -> Self {
        let criterion = Criterion::default()
            .sample_size(Self::SAMPLES)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2))
            .configure_from_args();
        Self { criterion, rows: Vec::new() }
    }

    /// Seconds a round, the median; `None` if it was filtered out. `rounds` runs so many and says how long they took.
    fn measure(&mut self, name: &str, mut rounds: impl FnMut(u64) -> Duration) -> Option<f64> {
        let mut samples = Vec::new();
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|n| {
                let took = rounds(n);
                samples.push(took.as_secs_f64() / n as f64);
                took
            });
        });
        // The first ones warmed up.
        let mut counted = samples.split_off(samples.len().saturating_sub(Self::SAMPLES));
        counted.sort_by(f64::total_cmp);
        counted.get(counted.len() / 2).copied()
    }

    fn row(&mut self, what: String, figure: String, goal: &str) {
        self.rows.push([what, figure, goal.into()]);
    }

    fn rate(&mut self, what: &str, round: Option<f64>, events: u32, goal: &str) {
        if let Some(round) = round {
            self.row(what.into(), format!("{:.0} events/s", f64::from(events) / round), goal);
        }
    }

    fn time(&mut self, what: String, round: Option<f64>, goal: &str) {
        if let Some(round) = round {
            self.row(what, format!("{:.3?}", Duration::from_secs_f64(round)), goal);
        }
    }

    fn ratio(&mut self, what: &str, one: Option<f64>, other: Option<f64>, goal: &str) {
        if let (Some(one), Some(other)) = (one, other) {
            self.row(what.into(), format!("{:.2}", one / other), goal);
        }
    }

    fn print(&self) {
        for [what, figure, goal] in &self.rows {
            println!("{what:<52} {figure:<26} {goal}");
        }
    }
}
