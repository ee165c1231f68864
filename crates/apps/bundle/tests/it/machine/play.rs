//! What each operation does, to the app and to the model.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use agent::{AgentRef, Inbox};
use sandbox::Mode;
use sandbox_policy::ModeSet;
use session::{SessionId, Snapshot, StepStart, ToolCalled, TurnEnd, TurnReason};
use subagent::{Request, Run, StartError, Starting, StopReason};
use user_approval::{Policy, PolicySet};

use super::model::Expected;
use super::world::{Live, Owned, World};
use super::{Op, Task, Then};
use crate::support::until;

/// How far below a top-level session a child may stand, by default.
const MAX_DEPTH: u32 = 3;

impl World {
    pub(crate) async fn play(&mut self, op: Op) {
        match op {
            Op::Create(initial) if self.live.len() < 8 => self.create(initial).await,
            Op::Create(_) => {}
            Op::Switch(who, mode) => self.on(who, |world, at| world.switch(at, mode)),
            Op::Approve(who, policy) => self.on(who, |world, at| world.approve(at, policy)),
            Op::Default(mode) => {
                self.default = mode;
                self.app.policy.set_default(mode);
            }
            Op::Probe(who) => self.turn(who, Task::Probe).await,
            Op::Ask(who) => self.turn(who, Task::Ask).await,
            Op::Open(who) => self.open(who).await,
            Op::Cancel(who) => self.cancel(who).await,
            Op::Delegate { parent, fork, task, then } => self.delegate(parent, fork, task, then).await,
            Op::Dispose(who) => {
                if let Some(at) = self.pick(who).filter(|at| matches!(self.live[*at].owned, Owned::Child(_))) {
                    self.end(at).await;
                }
            }
            Op::Crash => self.crash().await,
        }
    }

    fn pick(&self, who: u8) -> Option<usize> {
        (!self.live.is_empty()).then(|| usize::from(who) % self.live.len())
    }

    fn on(&mut self, who: u8, act: impl FnOnce(&mut Self, usize)) {
        if let Some(at) = self.pick(who) {
            act(self, at);
        }
    }

    fn expected(&mut self, id: SessionId) -> &mut Expected {
        self.model.known.get_mut(&id).expect("whoever lives is known")
    }

    fn switch(&mut self, at: usize, mode: Mode) {
        let agent = &self.live[at].agent;
        let (id, seq) = (agent.id(), agent.session().append(ModeSet::by_user(mode)).unwrap());
        self.expected(id).switch(seq, mode);
    }

    fn approve(&mut self, at: usize, policy: Policy) {
        let agent = &self.live[at].agent;
        let (id, seq) = (agent.id(), agent.session().append(PolicySet::by_user(policy)).unwrap());
        self.expected(id).approve(seq, policy);
    }

    /// A turn of somebody who has none.
    async fn turn(&mut self, who: u8, task: Task) {
        let Some(agent) = self.idle(who) else { return };
        let file = self.next_file();
        let outcome = agent.followup(script(task, file)).unwrap().outcome().await;
        assert_eq!(outcome.reason, TurnReason::Completed);
        self.look_at(agent.id(), task, file);
    }

    fn idle(&self, who: u8) -> Option<AgentRef> {
        Some(self.live[self.pick(who)?].agent.clone()).filter(AgentRef::is_idle)
    }

    fn next_file(&mut self) -> u32 {
        self.files += 1;
        self.files
    }

    /// The disk is the witness.
    fn look_at(&mut self, id: SessionId, task: Task, file: u32) {
        let (mode, policy) = (self.model.known[&id].mode(self.default), self.model.known[&id].policy());
        let (inside, outside) = match task {
            Task::Probe => (mode >= Mode::WorkspaceWrite, mode == Mode::DangerFullAccess),
            Task::Ask => (false, mode < Mode::DangerFullAccess && policy == Policy::Ask),
            Task::Hang | Task::Delegate | Task::DelegateFork => return,
        };
        if matches!(task, Task::Ask) && outside {
            self.must_ask.push(id);
        }
        let there = |path: String| self.at(&path).exists();
        assert_eq!((there(format!("ws/{file}")), there(format!("outside/{file}"))), (inside, outside), "{id} {mode}");
    }

    async fn open(&mut self, who: u8) {
        let Some(agent) = self.idle(who) else { return };
        let before = agent.session().len();
        drop(agent.followup("hang").unwrap());
        in_a_step(&agent, before).await;
    }

    async fn cancel(&mut self, who: u8) {
        let Some(at) = self.pick(who) else { return };
        let agent = &self.live[at].agent;
        if !agent.is_idle() {
            assert!(agent.cancel("enough", Inbox::Keep));
            agent.when_idle().await;
        }
    }

    async fn end(&mut self, at: usize) {
        match self.live.remove(at).owned {
            Owned::Top(agent) => agent.dispose().await.unwrap(),
            Owned::Child(run) => run.dispose().await.unwrap(),
        }
        let agents = self.app.agents.clone();
        // Whoever stood below is gone as well.
        self.live.retain(|live| agents.get(live.agent.id()).is_some());
    }

    async fn delegate(&mut self, who: u8, fork: bool, task: Task, then: Then) {
        let Some(at) = self.pick(who).filter(|_| self.live.len() < 12) else { return };
        let parent = self.live[at].agent.clone();
        let file = self.next_file();
        let request = Request::new(script(task, file));
        let cancelled = request.cancelled.clone();
        let log = parent.session().snapshot();
        let child = self.model.known[&parent.id()].child(parent.id(), log.len(), seed(&log, log.len(), fork));
        let starting = self.app.subagents.start(&parent, provider(fork), request);
        match then {
            Then::Nothing | Then::Drop | Then::DropAfter(_) => {}
            Then::Switch(mode) => self.switch(at, mode),
            Then::Approve(policy) => self.approve(at, policy),
            Then::Cancel => cancelled.cancel(),
            Then::EndParent => self.end(at).await,
        }
        let started = match then {
            Then::Drop => {
                drop(starting);
                None
            }
            Then::DropAfter(polls) => polled(starting, polls).await,
            _ => Some(starting.await),
        };
        let too_deep = child.depth() > MAX_DEPTH;
        match started {
            Some(Ok(run)) => {
                assert!(!too_deep && !matches!(then, Then::Cancel | Then::EndParent), "{then:?}");
                self.begun(run, child, task, file).await;
                self.settle(None).await;
            }
            Some(Err(StartError::TooDeep { depth, limit })) => assert_eq!((depth, limit, too_deep), (4, 3, true)),
            Some(Err(StartError::Cancelled)) => assert!(matches!(then, Then::Cancel)),
            Some(Err(StartError::ParentClosing)) => assert!(matches!(then, Then::EndParent)),
            Some(Err(other)) => panic!("{other}"),
            None => {
                self.settle(Some((child.clone(), task))).await;
                self.look_at_most(&child, file);
            }
        }
    }

    async fn begun(&mut self, run: Run, child: Expected, task: Task, file: u32) {
        let agent = self.app.agents.get(run.child().unwrap()).expect("it is published");
        let id = agent.id();
        self.model.known.insert(id, child);
        if let Task::Hang = task {
            in_a_step(&agent, agent.session().first_live_seq()).await;
        } else {
            assert_eq!(run.result().await.reason, StopReason::Completed);
            agent.when_idle().await;
            self.meet_grandchild(&agent, task, file);
            self.look_at(id, task, file);
        }
        self.live.push(Live { agent, owned: Owned::Child(run) });
    }

    /// What the tool of a child made is held to what the child was held to.
    fn meet_grandchild(&mut self, child: &AgentRef, task: Task, file: u32) {
        if !matches!(task, Task::Delegate | Task::DelegateFork) {
            return;
        }
        let started = self.app.news.lock().unwrap().started.clone();
        let below: Vec<_> = started.into_iter().filter(|(_, parent, _)| *parent == child.id()).collect();
        match below[..] {
            [] => {
                assert_eq!(self.model.known[&child.id()].depth(), MAX_DEPTH);
                self.look_at_most(&self.model.known[&child.id()], file);
            }
            [(_, _, id)] => {
                self.meet(&child.session().snapshot(), id, task);
                self.look_at(id, Task::Probe, file);
            }
            [_, _, ..] => panic!("it asked for one"),
        }
    }

    /// A child that a tool made, from the log of its parent, which asked for it last.
    pub(crate) fn meet(&mut self, parent: &Snapshot, child: SessionId, task: Task) {
        let called = parent.events().iter().rev().find(|event| event.get::<ToolCalled>().is_some()).unwrap().seq();
        let id = parent.header().id();
        let seed = seed(parent, called, matches!(task, Task::DelegateFork));
        let expected = self.model.known[&id].child(id, called + 1, seed);
        self.model.known.insert(child, expected);
    }

    /// The files of somebody who was stopped at any point.
    fn look_at_most(&self, who: &Expected, file: u32) {
        let mode = who.mode(self.default);
        assert!(mode >= Mode::WorkspaceWrite || !self.at(&format!("ws/{file}")).exists());
        assert!(mode == Mode::DangerFullAccess || !self.at(&format!("outside/{file}")).exists());
    }
}

fn provider(fork: bool) -> &'static str {
    if fork { "fork" } else { "spawn" }
}

/// How much of a log's first `len` events a fork copies.
fn seed(log: &Snapshot, len: u64, fork: bool) -> u64 {
    let end = log.events().iter().rev().find(|event| event.seq() < len && event.get::<TurnEnd>().is_some());
    end.filter(|_| fork).map_or(0, |end| end.seq() + 1)
}

fn script(task: Task, file: u32) -> String {
    let probe = format!("write {file} x & write ../outside/{file} x; say done");
    match task {
        Task::Probe => probe,
        Task::Ask => format!("write ../outside/{file} x with danger-full-access because test; say done"),
        Task::Hang => "hang".to_owned(),
        Task::Delegate => format!("spawn x {{ {probe} }}; say done"),
        Task::DelegateFork => format!("fork x {{ {probe} }}; say done"),
    }
}

async fn in_a_step(agent: &AgentRef, from: u64) {
    let session = agent.session();
    until(|| session.snapshot().events_from(from).any(|event| event.get::<StepStart>().is_some())).await;
}

/// Polls a start so often, and drops it if that was not enough.
async fn polled(starting: Starting, polls: u8) -> Option<Result<Run, StartError>> {
    let mut starting = pin!(starting);
    for _ in 0..polls {
        if let Poll::Ready(started) = poll_fn(|cx| Poll::Ready(starting.as_mut().poll(cx))).await {
            return Some(started);
        }
        tokio::task::yield_now().await;
    }
    None
}
