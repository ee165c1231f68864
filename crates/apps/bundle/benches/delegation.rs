//! What a child costs: spawned, run for one turn, disposed; one at a time and a hundred at once.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Agent, AgentRef, Agents, Live, Profile, Spec};
use bundle::Policies;
use context::Scope;
use llm::{LlmAdapter, Route};
use llm_script::Fixed;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::Sessions;
use subagent::{Request, Subagents};

const N: u32 = 40_000;

struct App {
    scope: Scope,
    agents: Arc<Agents>,
    sessions: Arc<Sessions>,
    subagents: Arc<Subagents>,
}

impl App {
    async fn new(model: Fixed) -> Self {
        let scope = Scope::root("bench");
        scope.register::<dyn LlmAdapter>("bench", Arc::new(model)).expect("a new app");
        let policies = Policies { sandbox: Mode::WorkspaceWrite, ..Policies::default() };
        bundle::spine(policies).start(&scope).await.expect("a whole composition");
        scope.own(scope.realm().on(|live: &Live| { black_box(live.session); })).expect("a new app");
        let (agents, sessions, subagents) = (scope.get().unwrap(), scope.get().unwrap(), scope.get().unwrap());
        Self { scope, agents, sessions, subagents }
    }

    async fn agent(&self) -> Agent {
        let session = self.sessions.create("/home/me/project");
        let spec = Spec::new(session, Profile::of(Route::new("bench", "fixed")));
        self.agents.create(&self.scope, spec).await.expect("a new agent")
    }
}

fn main() {
    for (name, runtime) in [("2 threads", threads(2)), ("current thread", current())] {
        runtime.block_on(async move {
            #[expect(clippy::disallowed_methods, reason = "the bench is the app")]
            tokio::spawn(cycles(name)).await.expect("no panic");
        });
    }
}

async fn cycles(runtime: &str) {
    let app = App::new(Fixed::letters("child is done!")).await;
    let parent = app.agent().await;
    parent.session().append(ModeSet::by_user(Mode::ReadOnly)).expect("open");
    let events = one(&app, &parent, true).await;
    let before = resident();
    for _ in 0..3 {
        let begun = Instant::now();
        for _ in 0..N {
            one(&app, &parent, false).await;
        }
        let sequential = rate(begun.elapsed());
        let begun = Instant::now();
        let crowd = (0..100).map(|_| async {
            for _ in 0..N / 100 {
                one(&app, &parent, false).await;
            }
        });
        futures_util::future::join_all(crowd).await;
        println!(
            "{runtime}: spawn, {events} events, dispose: {sequential:.0}/s sequential, {:.0}/s 100 at once",
            rate(begun.elapsed())
        );
    }
    println!("{runtime}: {} children later, resident grew by {} KB", 6 * N, resident().saturating_sub(before) / 1024);
    app.scope.close().await.expect("clean");
}

async fn one(app: &App, parent: &AgentRef, count: bool) -> u64 {
    let run = app.subagents.start(parent, "spawn", Request::new("do it")).await.expect("started");
    black_box(run.result().await);
    let child = count.then(|| app.agents.get(run.child().unwrap()).unwrap());
    run.dispose().await.expect("clean");
    child.map_or(0, |child| child.session().len())
}

fn rate(took: Duration) -> f64 {
    f64::from(N) / took.as_secs_f64()
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("linux");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).expect("pages") * 4096
}

fn threads(n: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(n).enable_time().build().expect("a runtime")
}

fn current() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}
