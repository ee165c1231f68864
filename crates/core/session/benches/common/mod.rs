//! What the benchmarks of several crates share: rows, timing, and sessions to measure.
//!
//! A row is one line of fields between tabs: `row`, the work, the figure, its goal, and whether it is met (`yes`, `no`, or
//! `-` where there is no goal). `cargo xtask bench` makes one table of them.
//!
//! Whatever else a machine does only adds to a time, so each figure is the fastest of its rounds, and a figure that is
//! compared with another is measured in turns with it.

#![allow(dead_code, reason = "no benchmark uses all of it")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llm::{Message, Sampling};
use session::*;

/// How many events a template turn has.
pub(crate) const TURN: u32 = 7;
const OPEN: &str = "nobody closes it";

/// What a figure counts.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    PerSecond,
    /// Given in seconds.
    Time,
    Bytes,
    Ratio,
    Count,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{value:.0}/s"),
            Self::Time => format!("{:.3?}", Duration::from_secs_f64(value)),
            Self::Bytes => format!("{:.1} KB", value / 1024.0),
            Self::Ratio => format!("{value:.2} ×"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

/// A figure without a goal.
pub(crate) fn figure(work: &str, value: f64, unit: Unit) {
    print_row(work, &unit.show(value), "", "-");
}

pub(crate) fn at_most(work: &str, value: f64, unit: Unit, goal: f64) {
    let met = if value <= goal { "yes" } else { "no" };
    print_row(work, &unit.show(value), &format!("≤ {}", unit.show(goal)), met);
}

pub(crate) fn at_least(work: &str, value: f64, unit: Unit, goal: f64) {
    let met = if value >= goal { "yes" } else { "no" };
    print_row(work, &unit.show(value), &format!("≥ {}", unit.show(goal)), met);
}

fn print_row(work: &str, value: &str, goal: &str, met: &str) {
    println!("row\t{work}\t{value}\t{goal}\t{met}");
}

/// Whether a group of measurements was asked for: all are, unless some are named.
pub(crate) fn wanted(group: &str) -> bool {
    let mut named = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).peekable();
    named.peek().is_none() || named.any(|name| name == group)
}

/// The fastest of `rounds`, each of which says how long it took.
pub(crate) fn fastest(rounds: usize, mut round: impl FnMut() -> Duration) -> f64 {
    (0..rounds).map(|_| round().as_secs_f64()).fold(f64::INFINITY, f64::min)
}

/// The fastest of `rounds` of both, in turns.
pub(crate) fn fastest_of(
    rounds: usize,
    mut one: impl FnMut() -> Duration,
    mut other: impl FnMut() -> Duration,
) -> (f64, f64) {
    (0..rounds).fold((f64::INFINITY, f64::INFINITY), |(ours, theirs), _| {
        (ours.min(one().as_secs_f64()), theirs.min(other().as_secs_f64()))
    })
}

/// How long one of `count` takes.
pub(crate) fn each(count: u32, mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    (0..count).for_each(|_| work());
    begun.elapsed() / count
}

/// What was made is dropped outside the clock, by the caller.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = Instant::now();
    let made = work();
    (begun.elapsed(), made)
}

/// Resident bytes of this process.
pub(crate) fn resident() -> usize {
    resident_of("self")
}

/// Resident bytes of a process, by its id.
pub(crate) fn resident_of(process: &str) -> usize {
    const PAGE: usize = 4_096;
    let statm = std::fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * PAGE
}

/// Resident bytes of each of 10,000 that are made and kept.
pub(crate) fn resident_each<T>(mut make: impl FnMut() -> T) -> f64 {
    const COUNT: usize = 10_000;
    let mut all = Vec::with_capacity(COUNT);
    all.extend((0..100).map(|_| make()));
    let before = resident();
    all.extend((100..COUNT).map(|_| make()));
    let grown = resident().saturating_sub(before);
    // Kept, so that the next measurement does not fill holes that this one left.
    std::mem::forget(all);
    grown as f64 / (COUNT - 100) as f64
}

pub(crate) fn request_header() -> Arc<RequestHeader> {
    Arc::new(RequestHeader {
        provider: "script".into(),
        model: "none".into(),
        sampling: Sampling::default(),
        system: "x".repeat(64).into(),
        tools: Arc::default(),
    })
}

/// Seven events with texts of 64 characters, all made here but for the request header, which a loop shares.
pub(crate) fn template_turn(session: &Session, turn: u32, header: &Arc<RequestHeader>) {
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

/// So many events, in template turns.
pub(crate) fn template_turns(session: &Session, events: u32) {
    let header = request_header();
    (1..=events / TURN).for_each(|turn| template_turn(session, turn, &header));
}

pub(crate) fn keep(appended: Result<u64, Closed>) {
    black_box(appended.expect(OPEN));
}

/// The lines of a log, from an event on.
pub(crate) fn lines_of(log: &Snapshot, from: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for event in log.events_from(from) {
        event.write(&mut text);
        text.push(b'\n');
    }
    text
}
