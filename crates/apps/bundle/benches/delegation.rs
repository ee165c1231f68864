//! What agents cost over the whole spine: a child spawned, run for one turn and disposed, one at a time and a hundred at
//! once; the same, durable; a turn on a long session beside one on an empty session; idle children in memory; and what
//! ten thousand of them leave.
//!
//! Each group has a process of its own, so that none meets the heap of another. `cargo bench -p bundle -- spawn` measures
//! one of them alone.

#![expect(clippy::print_stdout, reason = "a bench prints its rows")]
#![expect(clippy::disallowed_methods, reason = "a bench is the app")]

#[path = "../../../core/session/benches/common/mod.rs"]
mod common;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Agent, AgentRef, Agents, Live, Profile, Spec};
use bundle::Policies;
use common::*;
use context::{Plugins, Scope};
use llm::{LlmAdapter, Route};
use llm_script::Fixed;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{Session, Sessions};
use session_jsonl::{Config, SessionJsonl};
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

const GROUPS: [&str; 6] = ["spawn", "durable", "growth", "spawned", "forked", "many"];

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    match &named[..] {
        [group] => threads(2).block_on(async {
            let group = group.clone();
            tokio::spawn(async move { measure(&group).await }).await.expect("no panic");
        }),
        _ => GROUPS.into_iter().filter(|group| wanted(group)).for_each(|group| {
            let program = std::env::current_exe().expect("a process knows its program");
            assert!(Command::new(program).arg(group).status().expect("it can run itself").success());
        }),
    }
}

async fn measure(group: &str) {
    match group {
        "spawn" => cycles().await,
        "durable" => durable().await,
        "growth" => growth().await,
        "spawned" => idle("spawned", "spawn", 0, 12).await,
        "forked" => idle("forked, 70,000 events", "fork", 70_000, 60).await,
        "many" => many().await,
        other => panic!("no group named `{other}`; there are {GROUPS:?}"),
    }
}

async fn cycles() {
    const N: u32 = 20_000;
    let app = App::new(Fixed::letters("child is done!"), |spine| spine).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    one(&app, &parent).await;
    let before = resident();
    let (mut alone, mut crowd) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..8 {
        alone = alone.min(sequential(&app, &parent, N).await);
        crowd = crowd.min(at_once(&app, &parent, N).await);
    }
    at_least("spawn, one-turn reply, dispose, sequential", 1.0 / alone, Unit::PerSecond, 40e3);
    at_least("the same, 100 at once, 2 threads", 1.0 / crowd, Unit::PerSecond, 60e3);
    figure("resident after 320,000 children, grown by", resident().saturating_sub(before) as f64, Unit::Bytes);
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

/// Seconds a child.
async fn sequential(app: &App, parent: &AgentRef, count: u32) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        one(app, parent).await;
    }
    begun.elapsed().as_secs_f64() / f64::from(count)
}

/// Seconds a child, a hundred at once.
async fn at_once(app: &Arc<App>, parent: &AgentRef, count: u32) -> f64 {
    let begun = Instant::now();
    let line = |_| {
        let (app, parent) = (app.clone(), parent.clone());
        tokio::spawn(async move { sequential(&app, &parent, count / 100).await })
    };
    for task in (0..100).map(line).collect::<Vec<_>>() {
        task.await.expect("no panic");
    }
    begun.elapsed().as_secs_f64() / f64::from(count)
}

async fn one(app: &App, parent: &AgentRef) {
    let run = app.subagents.start(parent, "spawn", Request::new("do it")).await.expect("started");
    black_box(run.result().await);
    run.dispose().await.expect("clean");
}

async fn durable() {
    const N: u32 = 20;
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let dir = home.path().join("sessions");
    let config = Config { dir: dir.clone() };
    let app = App::new(Fixed::letters("child is done!"), |spine| spine.with(SessionJsonl, config)).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    one(&app, &parent).await;
    let (mut ours, mut bare, mut crowd, mut bare_crowd) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let mut ratios = Vec::new();
    for round in 0..120 {
        let spawned = sequential(&app, &parent, N).await;
        let names = round * N..(round + 1) * N;
        let written = each(1, || names.clone().for_each(|n| bare_life(&dir, n))).as_secs_f64() / f64::from(N);
        (ours, bare) = (ours.min(spawned), bare.min(written));
        ratios.push(spawned / written);
    }
    // Of neighbours: a disk has its faster and its slower moments, and each of the two would have its own luckiest.
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    for round in 0..10 {
        crowd = crowd.min(at_once(&app, &parent, 400).await);
        bare_crowd = bare_crowd.min(bare_lives(&dir, 10_000 + round * 400, 400));
    }
    figure("spawn, one-turn reply, dispose, durable", ours, Unit::Time);
    figure("its three fdatasync and one directory sync, bare", bare, Unit::Time);
    at_most("durable child ÷ its syncs bare", ratio, Unit::Ratio, 1.3);
    figure("durable children, 100 at once", 1.0 / crowd, Unit::PerSecond);
    figure("the same ÷ their syncs bare on 4 threads", crowd / bare_crowd, Unit::Ratio);
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

/// The durable calls that a child makes, in their order, with as many bytes.
fn bare_life(dir: &Path, n: u32) {
    let (unfinished, path) = (dir.join(format!("bare-{n}.new")), dir.join(format!("bare-{n}")));
    let mut file = OpenOptions::new().create_new(true).append(true).open(&unfinished).expect("a new file");
    for step in 0..3 {
        file.write_all(&[b'x'; 600]).expect("room");
        file.sync_data().expect("a disk");
        if step == 0 {
            std::fs::rename(&unfinished, &path).expect("a new name");
            File::open(dir).and_then(|dir| dir.sync_all()).expect("a directory");
        }
    }
}

/// Seconds a child, on as many threads as the store has.
fn bare_lives(dir: &Path, first: u32, count: u32) -> f64 {
    let took = timed(|| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || (first + thread..first + count).step_by(4).for_each(|n| bare_life(dir, n)));
            }
        });
    });
    took.0.as_secs_f64() / f64::from(count)
}

async fn growth() {
    const TURNS: u32 = 500;
    let app = App::new(Fixed::letters("child is done!"), |spine| spine).await;
    let agent_after = async |turns: u32| {
        let session = app.sessions.create("/home/me/project");
        template_turns(&session, turns * TURN);
        let agent = app.agent_of(session).await;
        agent.followup("warm up").expect("open").outcome().await;
        agent
    };
    let turns = async |agent: &Agent| {
        let begun = Instant::now();
        for _ in 0..TURNS {
            black_box(agent.followup("go on").expect("open").outcome().await);
        }
        begun.elapsed().as_secs_f64() / f64::from(TURNS)
    };
    let (mut empty, mut long) = (f64::INFINITY, f64::INFINITY);
    // Kept to the end: a session that was freed leaves the allocator with work for those behind it.
    let mut kept = vec![agent_after(10_000).await];
    for _ in 0..20 {
        // The long one only grows; an empty one does not stay empty.
        long = long.min(turns(&kept[0]).await);
        kept.push(agent_after(0).await);
        empty = empty.min(turns(&kept[kept.len() - 1]).await);
    }
    figure("a turn on an empty session", empty, Unit::Time);
    figure("a turn after 10,000 others", long, Unit::Time);
    at_most("a turn after 10,000 others ÷ on an empty session", long / empty, Unit::Ratio, 1.3);
    for agent in kept {
        agent.dispose().await.expect("clean");
    }
    app.scope.close().await.expect("clean");
}

async fn idle(name: &str, provider: &str, events: u32, kilobytes: u32) {
    const N: usize = 10_000;
    let app = App::new(Fixed::hanging(vec![llm::Chunk::Text("half".into())]), |spine| spine).await;
    let session = app.sessions.create("/home/me/project");
    template_turns(&session, events);
    let parent = app.agent_of(session).await;
    let mut runs = Vec::with_capacity(N);
    let mut before = 0;
    for n in 0..N + 100 {
        if n == 100 {
            before = resident();
        }
        runs.push(app.subagents.start(&parent, provider, Request::new("do it")).await.expect("started"));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let each = resident().saturating_sub(before) as f64 / N as f64;
    at_most(&format!("live idle child, {name}, resident"), each, Unit::Bytes, f64::from(kilobytes) * 1024.0);
    drop(runs);
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

async fn many() {
    const N: u32 = 10_000;
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let dir = home.path().join("sessions");
    let config = Config { dir: dir.clone() };
    let app = App::new(Fixed::letters("child is done!"), |spine| spine.with(SessionJsonl, config)).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    let left = async || {
        // The last tasks end soon after what they did is known.
        tokio::time::sleep(Duration::from_millis(200)).await;
        (tokio::runtime::Handle::current().metrics().num_alive_tasks() as f64, handles())
    };
    // Until what is kept for the next child is there: stacks, buffers, the allocator's own.
    at_once(&app, &parent, 4_000).await;
    sequential(&app, &parent, 100).await;
    let (memory, (tasks, files)) = (resident() as f64, left().await);
    at_once(&app, &parent, N).await;
    sequential(&app, &parent, 100).await;
    let after = left().await;
    at_most("10,000 durable children: memory after ÷ before", resident() as f64 / memory, Unit::Ratio, 1.05);
    at_most("tasks they leave", after.0 - tasks, Unit::Count, 0.0);
    at_most("file handles they leave", after.1 - files, Unit::Count, 0.0);
    // But for the one that the store keeps ready for the next session.
    let is_lock = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|e| {
            e.path().extension() == Some("lock".as_ref()) && !e.path().to_string_lossy().contains("/spare-")
        })
    };
    let locks = std::fs::read_dir(&dir).expect("it is there").filter_map(|entry| is_lock(entry).then_some(())).count();
    at_most("locks they leave, beside their parent's", locks as f64 - 1.0, Unit::Count, 0.0);
    parent.dispose().await.expect("clean");
    app.scope.close().await.expect("clean");
}

/// How many files this process has open.
fn handles() -> f64 {
    std::fs::read_dir("/proc/self/fd").expect("linux").count() as f64
}

fn threads(n: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(n).enable_time().build().expect("a runtime")
}
