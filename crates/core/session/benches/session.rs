//! What a log costs: appending, forking, asking for the latest, reading, and memory.
//!
//! Prints a table of figures and goals at the end. Each is the fastest of twenty samples, since whatever else the machine
//! does only adds; ratios against a baseline of the same run say more than times do.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::Criterion;
use llm::{Message, Sampling};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use session::*;

const OPEN: &str = "nobody closes it";
const TURN: u32 = 7;

fn main() {
    // As in the product, where the allocator knows of threads and takes its locks.
    std::thread::spawn(|| {}).join().expect("no panic");
    let mut table = Table::new();
    memory(&mut table);
    read(&mut table);
    append(&mut table);
    fork(&mut table);
    latest(&mut table);
    table.print();
}

/// Resident bytes a session, of many that do nothing. First, while the heap has no holes.
fn memory(table: &mut Table) {
    let parent = history(70_000);
    for (name, seed, goal) in [
        ("forked from 70,000 events", Seed::ClosedTurns, "≤ 60 KB, its agent included"),
        ("spawned", Seed::Fresh, "≤ 12 KB, its agent included"),
    ] {
        let new = resident_each(|| child(&parent, seed));
        let used = resident_each(|| {
            let child = child(&parent, seed);
            template_turn(&child, 1, &request_header());
            child
        });
        table.row(format!("resident, {name}"), format!("{new} bytes, {used} after a turn"), goal);
    }
}

fn append(table: &mut Table) {
    const EVENTS: u32 = 70_000;
    let house = Sessions::new();
    let filled = |fill: &(dyn Fn(&Session) + Sync)| {
        let session = house.create("/home/me/project");
        let begun = Instant::now();
        fill(&session);
        begun.elapsed()
    };
    let turns = |session: &Session| {
        let header = request_header();
        (1..=EVENTS / TURN).for_each(|turn| template_turn(session, turn, &header));
    };
    let bare = |session: &Session| {
        (0..EVENTS).for_each(|turn| keep(session.append(StepStart { turn, step: 1 })));
    };
    let one = table.measure("append/template turns", |n| (0..n).map(|_| filled(&turns)).sum());
    table.rate("append, template turns", one, EVENTS, "≥ 4,000,000 events/s");
    let bare = table.measure("append/bare", |n| (0..n).map(|_| filled(&bare)).sum());
    table.rate("append, payloads without heap", bare, EVENTS, "");
    // Short ones, as children are: what is measured is whether they share anything, not how a heap grows.
    let children = |n: u64| {
        let header = request_header();
        let one = || {
            (1..=3).fold(house.create("/"), |session, turn| {
                template_turn(&session, turn, &header);
                session
            })
        };
        time(n * 1_000, || drop(black_box(one())))
    };
    let alone = table.measure("append/short sessions", children);
    let both = table.measure("append/short sessions, two threads", |n| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| children(n));
            children(n).max(other.join().expect("no panic"))
        })
    });
    table.ratio("two threads ÷ one, short sessions each", both, alone, "1.0: nothing shared");
}

fn fork(table: &mut Table) {
    for events in [1_000, 10_000, 1_000_000] {
        let parent = history(events);
        let each = table.measure(&format!("fork/{events}"), |n| time(n, || drop(child(&parent, Seed::ClosedTurns))));
        table.time(format!("fork from {events} events, stamped"), each, "≤ 50 µs, equal for all");
    }
}

fn latest(table: &mut Table) {
    for events in [1_000, 1_000_000] {
        let session = history(events);
        let each = table.measure(&format!("latest/{events}"), |n| time(n, || drop(session.latest::<SessionTitle>())));
        table.time(format!("latest in {events} events"), each, "O(1)");
    }
}

fn read(table: &mut Table) {
    let text = text_of(&history(100_000));
    let vocabulary = Sessions::new().vocabulary();
    let bare = table.measure("read/bare envelopes", |n| {
        time(n, || {
            for line in text.lines().skip(1) {
                black_box(serde_json::from_str::<Envelope<'_>>(line).expect("just written"));
            }
        })
    });
    let decode = |text: String| vocabulary.decode(text).expect("just written");
    let decoded = table.measure("read/decode", |n| {
        let once = |text: String| timed(|| decode(text)).0;
        (0..n).map(|_| once(text.clone())).sum()
    });
    let messages = table.measure("read/messages", |n| {
        let once = |decoded: Decoded| timed(|| decoded.log().messages().expect("sound")).0;
        (0..n).map(|_| once(decode(text.clone()))).sum()
    });
    table.time(format!("bare parse of 100,000 events, {} bytes", text.len()), bare, "");
    table.time("decode of 100,000 events".into(), decoded, "≤ 30 ms with the process");
    table.ratio("decode ÷ bare parse", decoded, bare, "≤ 1.5");
    table.time("messages() of it, the first time".into(), messages, "");
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

/// What a policy writes, in a house with two of them.
#[derive(Clone, Serialize, Deserialize)]
struct Override {
    mode: Box<str>,
    source: Box<str>,
}

impl Payload for Override {
    const TAG: &'static str = "bench/override";
    const DECISIVE: bool = true;
}

struct Policy(Rank);

impl Contributor for Policy {
    fn rank(&self) -> Rank {
        self.0
    }

    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps) {
        stamps.add(parent.latest::<Override>().expect("written at the start").clone());
    }
}

/// A session of whole template turns in a house with two policies, behind an override and a title.
fn history(events: u32) -> Session {
    let house = Sessions::new();
    for (name, rank) in [("sandbox", Rank::Sandbox), ("approval", Rank::Approval)] {
        std::mem::forget(house.register_contributor(name, Arc::new(Policy(rank))).expect("a new house"));
    }
    let session = house.create("/home/me/project");
    session.append(Override { mode: "read-only".into(), source: "initial".into() }).expect(OPEN);
    session.append(SessionTitle { title: "what it is about".into(), source: "prompt".into() }).expect(OPEN);
    let header = request_header();
    (1..=events / TURN).for_each(|turn| template_turn(&session, turn, &header));
    session
}

fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).expect("no policy panics"), seed)
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

fn request_header() -> Arc<RequestHeader> {
    Arc::new(RequestHeader {
        provider: "script".into(),
        model: "none".into(),
        sampling: Sampling::default(),
        system: "x".repeat(64).into(),
        tools: Arc::default(),
    })
}

fn text_of(session: &Session) -> String {
    let mut text = serde_json::to_vec(&**session.header()).expect("memory");
    for event in session.snapshot().events().iter() {
        text.push(b'\n');
        event.write(&mut text);
    }
    text.push(b'\n');
    String::from_utf8(text).expect("JSON is UTF-8")
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

fn resident_each(make: impl Fn() -> Session) -> usize {
    const SESSIONS: usize = 10_000;
    let mut all = Vec::with_capacity(SESSIONS);
    all.extend((0..100).map(|_| make()));
    let before = resident();
    all.extend((100..SESSIONS).map(|_| make()));
    let grown = resident() - before;
    // Kept, so that the next measurement does not fill holes that this one left.
    std::mem::forget(all);
    grown / (SESSIONS - 100)
}

fn resident() -> usize {
    const PAGE: usize = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * PAGE
}

/// Criterion does the measuring; this keeps the fastest samples, for ratios and for the table.
struct Table {
    criterion: Criterion,
    rows: Vec<[String; 3]>,
}

impl Table {
    fn new() -> Self {
        let criterion = Criterion::default()
            .sample_size(20)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2))
            .configure_from_args();
        Self { criterion, rows: Vec::new() }
    }

    /// Seconds a round; `None` if it was filtered out. `rounds` runs so many and says how long they took.
    fn measure(&mut self, name: &str, mut rounds: impl FnMut(u64) -> Duration) -> Option<f64> {
        let mut fastest = None;
        self.criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|n| {
                let took = rounds(n);
                let each = took.as_secs_f64() / n as f64;
                fastest = Some(fastest.map_or(each, |fastest: f64| fastest.min(each)));
                took
            });
        });
        fastest
    }

    fn row(&mut self, what: String, figure: String, goal: &str) {
        self.rows.push([what, figure, goal.into()]);
    }

    fn rate(&mut self, what: &str, round: Option<f64>, events: u32, goal: &str) {
        if let Some(round) = round {
            self.row(what.into(), format!("{:.2} M events/s", f64::from(events) / round / 1e6), goal);
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
            println!("{what:<48} {figure:<34} {goal}");
        }
    }
}
