//! What a log costs: appending, forking, asking for the latest, reading, and memory.
#![expect(clippy::print_stdout, reason = "a bench prints its rows")]

#[path = "common/bare.rs"]
mod bare;
mod common;

use std::hint::black_box;
use std::sync::Arc;

use bare::parse_bare;
use common::*;
use serde::{Deserialize, Serialize};
use session::*;

const ROUNDS: usize = 20;

fn main() {
    // As in the product, where the allocator knows of threads and takes its locks.
    std::thread::spawn(|| {}).join().expect("no panic");
    // Memory first, while the heap has no holes.
    for (name, measure) in
        [("memory", memory as fn()), ("append", append), ("fork", fork), ("latest", latest), ("read", read)]
    {
        if wanted(name) {
            measure();
        }
    }
}

fn memory() {
    let parent = history(70_000);
    for (name, seed) in [("forked from 70,000 events", Seed::ClosedTurns), ("spawned", Seed::Fresh)] {
        figure(&format!("resident, session alone, {name}"), resident_each(|| child(&parent, seed)), Unit::Bytes);
    }
}

fn append() {
    const EVENTS: u32 = 70_000;
    let house = Sessions::new();
    let filled = |fill: &dyn Fn(&Session)| {
        let session = house.create("/home/me/project");
        timed(|| fill(&session)).0 / EVENTS
    };
    let one = fastest(ROUNDS, || filled(&|session| template_turns(session, EVENTS)));
    at_least("append in memory, template turns", 1.0 / one, Unit::PerSecond, 4e6);
    let bare = fastest(ROUNDS, || {
        filled(&|session| (0..EVENTS).for_each(|turn| keep(session.append(StepStart { turn, step: 1 }))))
    });
    figure("append in memory, payloads without heap", 1.0 / bare, Unit::PerSecond);

    // Short ones, as children are: what is measured is whether they share anything, not how a heap grows.
    let children = || each(1_000, || template_turns(black_box(&house.create("/")), 3 * TURN));
    let two = || {
        std::thread::scope(|scope| {
            let other = scope.spawn(children);
            children().max(other.join().expect("no panic"))
        })
    };
    let (two, one) = fastest_of(ROUNDS, two, children);
    figure("short sessions on two threads ÷ on one", two / one, Unit::Ratio);
}

fn fork() {
    for (events, name) in [(1_000, "1,000"), (10_000, "10,000"), (1_000_000, "1,000,000")] {
        let parent = history(events);
        let took = fastest(ROUNDS, || each(1_000, || drop(child(&parent, Seed::ClosedTurns))));
        at_most(&format!("fork from {name} events"), took, Unit::Time, 50e-6);
    }
}

fn latest() {
    let [short, long] = [1_000, 1_000_000].map(history);
    let ask = |session: &Session| each(10_000, || drop(black_box(session.latest::<SessionTitle>())));
    let (long, short) = fastest_of(ROUNDS, || ask(&long), || ask(&short));
    figure("latest in 1,000,000 events", long, Unit::Time);
    figure("the same ÷ in 1,000", long / short, Unit::Ratio);
}

fn read() {
    let session = history(100_000);
    let header = serde_json::to_string(&**session.header()).expect("memory");
    let lines = String::from_utf8(lines_of(&session.snapshot(), 0)).expect("JSON is UTF-8");
    let vocabulary = Sessions::new().vocabulary();
    let text = format!("{header}\n{lines}");
    let decode = |text: String| vocabulary.decode(text).expect("just written");
    let decoding = || {
        let text = text.clone();
        timed(|| decode(text)).0
    };
    let (decoded, bare) = fastest_of(ROUNDS, decoding, || timed(|| parse_bare(&lines)).0);
    figure("decode 100,000 events", decoded, Unit::Time);
    at_most("decode 100,000 events ÷ a bare parse of the lines", decoded / bare, Unit::Ratio, 1.5);
    let messages = fastest(ROUNDS, || {
        let decoded = decode(text.clone());
        timed(|| decoded.log().messages().expect("sound")).0
    });
    figure("their messages, the first time", messages, Unit::Time);
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
    keep(session.append(Override { mode: "read-only".into(), source: "initial".into() }));
    keep(session.append(SessionTitle { title: "what it is about".into(), source: "prompt".into() }));
    template_turns(&session, events);
    session
}

fn child(parent: &Session, seed: Seed) -> Session {
    Session::delegated(Delegation::capture(parent).expect("no policy panics"), seed)
}
