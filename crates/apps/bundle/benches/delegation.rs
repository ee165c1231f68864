//! What agents cost over the whole spine: a child spawned, run for one turn and disposed, one at a time and a hundred at
//! once; the same, durable; a turn on a long session beside one on an empty session; an idle child in memory.
//!
//! `cargo bench -p bundle -- spawn` measures one of them alone.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]
#![expect(clippy::disallowed_methods, reason = "a bench is the app")]

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Agent, AgentRef, Agents, Live, Profile, Spec};
use bundle::Policies;
use context::{Plugins, Scope};
use llm::{LlmAdapter, Message, Route, Usage};
use llm_script::Fixed;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{
    AssistantMessage, HeaderReason, MessageId, RequestHeader, RequestHeaderEvent, Session, Sessions, Source, StepEnd,
    StepStart, TurnEnd, TurnReason, TurnStart, UserMessage,
};
use subagent::{Request, Subagents};

struct App {
    scope: Scope,
    agents: Arc<Agents>,
    sessions: Arc<Sessions>,
    subagents: Arc<Subagents>,
}

impl App {
    async fn new(model: Fixed, more: impl FnOnce(Plugins) -> Plugins) -> Arc<Self> {
        let scope = Scope::root("bench");
        scope.register::<dyn LlmAdapter>("bench", Arc::new(model)).expect("a new app");
        let policies = Policies { sandbox: Mode::WorkspaceWrite, ..Policies::default() };
        more(bundle::spine(policies)).start(&scope).await.expect("a whole composition");
        let listener = |live: &Live| {
            black_box(live.session);
        };
        scope.own(scope.realm().on(listener)).expect("a new app");
        let (agents, sessions, subagents) = (scope.get().unwrap(), scope.get().unwrap(), scope.get().unwrap());
        Arc::new(Self { scope, agents, sessions, subagents })
    }

    async fn agent_of(&self, session: Session) -> Agent {
        let spec = Spec::new(session, Profile::of(Route::new("bench", "fixed")));
        self.agents.create(&self.scope, spec).await.expect("a new agent")
    }

    async fn agent(&self) -> Agent {
        self.agent_of(self.sessions.create("/home/me/project")).await
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    println!("{:<58} {:>14} {:>14}", "delegation", "measured", "goal");
    if wanted("spawn") {
        threads(2).block_on(async { tokio::spawn(cycles()).await.expect("no panic") });
    }
    if wanted("durable") {
        threads(2).block_on(async { tokio::spawn(durable()).await.expect("no panic") });
    }
    if wanted("growth") {
        threads(2).block_on(async { tokio::spawn(growth()).await.expect("no panic") });
    }
    if wanted("idle") {
        threads(2).block_on(async { tokio::spawn(idle()).await.expect("no panic") });
    }
}

fn row(what: &str, measured: impl std::fmt::Display, goal: &str) {
    println!("{what:<58} {measured:>14} {goal:>14}");
}

async fn cycles() {
    const N: u32 = 40_000;
    let app = App::new(Fixed::letters("child is done!"), |spine| spine).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    let events = one(&app, &parent, true).await;
    let before = resident();
    let (mut alone, mut crowd) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let begun = Instant::now();
        for _ in 0..N {
            one(&app, &parent, false).await;
        }
        alone.push(rate(N, begun.elapsed()));
        let begun = Instant::now();
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let (app, parent) = (app.clone(), parent.handle().clone());
                tokio::spawn(async move {
                    for _ in 0..N / 100 {
                        one(&app, &parent, false).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
        crowd.push(rate(N, begun.elapsed()));
    }
    row(&format!("spawn, turn of {events} events, dispose, sequential"), per_second(median(alone)), "≥ 40000/s");
    row("the same, 100 at once, 2 threads", per_second(median(crowd)), "≥ 60000/s");
    row("resident after 400,000 children", format!("+{} KB", resident().saturating_sub(before) / 1024), "");
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

async fn one(app: &App, parent: &AgentRef, count: bool) -> u64 {
    let run = app.subagents.start(parent, "spawn", Request::new("do it")).await.expect("started");
    black_box(run.result().await);
    let child = count.then(|| app.agents.get(run.child().expect("in this process")).expect("live"));
    run.dispose().await.expect("clean");
    child.map_or(0, |child| child.session().len())
}

async fn durable() {
    const N: u32 = 300;
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("sessions");
    let store = session_jsonl::Config { dir: dir.clone() };
    let app = App::new(Fixed::letters("child is done!"), |spine| spine.with(session_jsonl::SessionJsonl, store)).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    one(&app, &parent, false).await;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 0..5 {
        let begun = Instant::now();
        for _ in 0..N {
            one(&app, &parent, false).await;
        }
        ours.push(begun.elapsed().as_secs_f64() / f64::from(N));
        let begun = Instant::now();
        (0..N).for_each(|n| bare_syncs(&dir, round * N + n));
        bare.push(begun.elapsed().as_secs_f64() / f64::from(N));
    }
    let (ours, bare) = (median(ours), median(bare));
    row("spawn, turn, dispose, durable at the end", format!("{:.3} ms", ours * 1e3), "");
    row("three fdatasync and one directory sync, bare", format!("{:.3} ms", bare * 1e3), "");
    row("ratio", format!("{:.2}", ours / bare), "≤ 1.30");
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

/// The system calls that a durable child may make at most, with as many bytes.
fn bare_syncs(dir: &std::path::Path, n: u32) {
    let path = dir.join(format!("bare-{n}"));
    let mut file = OpenOptions::new().create_new(true).append(true).open(&path).expect("a new file");
    for step in 0..3 {
        file.write_all(&[b'x'; 600]).expect("room");
        file.sync_data().expect("a disk");
        if step == 0 {
            File::open(dir).and_then(|dir| dir.sync_all()).expect("a directory");
        }
    }
}

async fn growth() {
    const TURNS: u32 = 2_000;
    let app = App::new(Fixed::letters("child is done!"), |spine| spine).await;
    let mut took = [Vec::new(), Vec::new()];
    // Kept to the end: a session that was freed leaves the allocator with work for those behind it.
    let mut kept = Vec::new();
    for round in 0..10 {
        let earlier = [0, 10_000][round % 2];
        let session = app.sessions.create("/home/me/project");
        (1..=earlier).for_each(|turn| template_turn(&session, turn));
        let agent = app.agent_of(session.clone()).await;
        agent.followup("warm up").expect("open").outcome().await;
        let begun = Instant::now();
        for _ in 0..TURNS {
            black_box(agent.followup("go on").expect("open").outcome().await);
        }
        took[round % 2].push(begun.elapsed().as_secs_f64() / f64::from(TURNS));
        agent.dispose().await.expect("clean");
        kept.push(session);
    }
    let [empty, long] = took.map(median);
    row("a turn on an empty session", format!("{:.1} µs", empty * 1e6), "");
    row("a turn after 10,000 others", format!("{:.1} µs", long * 1e6), "");
    row("ratio", format!("{:.2}", long / empty), "≤ 1.30");
    app.scope.close().await.expect("clean");
}

async fn idle() {
    const N: usize = 10_000;
    let app = App::new(Fixed::hanging(vec![llm::Chunk::Text("half".into())]), |spine| spine).await;
    let parent = app.agent().await;
    let mut runs = Vec::with_capacity(N);
    let mut before = 0;
    for n in 0..N + 100 {
        if n == 100 {
            before = resident();
        }
        runs.push(app.subagents.start(&parent, "spawn", Request::new("do it")).await.expect("started"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let each = resident().saturating_sub(before) / N;
    row("live idle spawned child, resident", format!("{:.1} KB", each as f64 / 1024.0), "≤ 12 KB");
    let begun = Instant::now();
    drop(runs);
    parent.dispose().await.expect("clean");
    row("10,100 of them disposed at once", format!("{:.0} ms", begun.elapsed().as_secs_f64() * 1e3), "");
    app.scope.close().await.expect("clean");
}

/// Seven events with 64-character texts.
fn template_turn(session: &Session, turn: u32) {
    let step = 1;
    let open = "an open session";
    let header = RequestHeader {
        provider: "bench".into(),
        model: "fixed".into(),
        sampling: llm::Sampling::default(),
        system: "".into(),
        tools: Arc::default(),
    };
    session.append(TurnStart { turn }).expect(open);
    let message = Arc::new(Message::user("x".repeat(64)));
    session.append_with(|seq| UserMessage { id: MessageId(seq), message, source: Source::Prompt }).expect(open);
    session.append(StepStart { turn, step }).expect(open);
    let header = RequestHeaderEvent { reason: HeaderReason::Changed, header: Arc::new(header) };
    session.append(header).expect(open);
    let message = Arc::new(Message::assistant("x".repeat(64)));
    let usage = Some(Usage::default());
    session.append(AssistantMessage { turn, step, message, usage, interrupted: false }).expect(open);
    session.append(StepEnd { turn, step }).expect(open);
    session.append(TurnEnd { turn, reason: TurnReason::Completed }).expect(open);
}

fn rate(n: u32, took: Duration) -> f64 {
    f64::from(n) / took.as_secs_f64()
}

fn per_second(rate: f64) -> String {
    format!("{rate:.0}/s")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("pages") * 4096
}

fn threads(n: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(n).enable_time().build().expect("a runtime")
}
