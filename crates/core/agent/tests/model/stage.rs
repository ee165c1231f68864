//! An agent, a driver that takes its time, and what the log says of it all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use agent::{Agent, AgentDriver, AgentRef, Agents, Driven, Input, Profile, Receipt, SendError, Spec, TurnOutcome};
use context::{Boxed, Scope};
use llm::{Route, Usage};
use session::{Delivery, InboxAccepted, InboxClaimed, InboxDiscarded, MessageId, Session, Sessions, TurnReason};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

const SEED: u64 = 0x7e74_e201;
const SCHEDULES: usize = 1_000;
/// How many changes of task, in places that the checker picks, a bug may need.
const DEPTHS: [usize; 2] = [2, 4];

/// Runs `model` under every schedule that is tried.
pub(crate) fn check<F: Future<Output = ()>>(model: impl Fn() -> F + Send + Sync + 'static) {
    fn run<F: Future<Output = ()>>(scheduler: impl Scheduler + 'static, model: impl Fn() -> F + Send + Sync + 'static) {
        let mut config = Config::new();
        config.silence_warnings = true;
        Runner::new(scheduler, config).run(move || shuttle::future::block_on(model()));
    }
    let model = Arc::new(model);
    let with = || {
        let model = model.clone();
        move || model()
    };
    run(RandomScheduler::new_from_seed(SEED, SCHEDULES), with());
    for depth in DEPTHS {
        run(PctScheduler::new_from_seed(SEED, depth, SCHEDULES), with());
    }
}

/// Lets the others go on, if the checker likes.
pub(crate) async fn pause() {
    shuttle::future::yield_now().await;
}

pub(crate) struct Stage {
    pub(crate) app: Scope,
    pub(crate) agents: Arc<Agents>,
    pub(crate) session: Session,
    pub(crate) turns: Arc<Turns>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let (app, turns) = (Scope::root("app"), Arc::new(Turns::default()));
        app.provide::<dyn AgentDriver>(Arc::new(Driver(turns.clone()))).unwrap();
        let (agents, session) = (Agents::new(&app), Sessions::new().create("/home/me/project"));
        Self { app, agents, session, turns }
    }

    pub(crate) fn spec(&self) -> Spec {
        Spec::new(self.session.clone(), Profile::of(Route::new("test", "model")))
    }

    pub(crate) async fn agent(&self) -> Agent {
        self.agents.create(&self.app, self.spec()).await.unwrap()
    }
}

/// What the driver did: the reason of each turn that it settled. Not a lock of the checker: noting is no reason to change
/// tasks.
#[derive(Default)]
pub(crate) struct Turns(Mutex<Vec<(u32, Vec<MessageId>, TurnReason)>>);

impl Turns {
    /// The turn that ended with this message, and why it did.
    pub(crate) fn of(&self, id: MessageId) -> Option<(u32, TurnReason)> {
        let turns = self.0.lock().unwrap();
        let (turn, _, reason) = turns.iter().find(|(_, ids, _)| ids.contains(&id))?;
        Some((*turn, reason.clone()))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Turns of two steps. One that is cancelled takes its time to wind down.
struct Driver(Arc<Turns>);

impl AgentDriver for Driver {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        let turns = self.0.clone();
        Box::pin(async move {
            let mut turn = 0;
            while let Some(mut opening) = driven.next_turn().await {
                turn += 1;
                for _ in 0..2 {
                    pause().await;
                    if opening.cancelled.is_cancelled() {
                        break;
                    }
                    opening.messages.extend(driven.claim_for_step());
                }
                let reason = if opening.cancelled.is_cancelled() {
                    pause().await;
                    TurnReason::Aborted { cause: driven.cancel_cause() }
                } else {
                    TurnReason::Completed
                };
                let ids = opening.messages.iter().map(|message| message.id).collect();
                turns.0.lock().unwrap().push((turn, ids, reason.clone()));
                driven.settle(&opening, TurnOutcome { turn, reason, output: None, usage: Usage::default() });
            }
        })
    }
}

pub(crate) fn send(agent: &AgentRef, delivery: Delivery) -> Result<Receipt, SendError> {
    agent.send(Input { delivery, ..Input::prompt("go") })
}

/// What the log says of each message.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) delivery: Delivery,
    pub(crate) claimed: usize,
    pub(crate) discarded: usize,
}

impl Fate {
    pub(crate) fn wakes(&self) -> bool {
        self.delivery != Delivery::Inject
    }
}

/// Reads the log, and sees that it claims messages that are there, each at most once, and in the order of acceptance
/// among those that are read in the same way.
pub(crate) fn fates(session: &Session) -> BTreeMap<MessageId, Fate> {
    let mut fates = BTreeMap::new();
    let mut last = BTreeMap::new();
    for event in session.snapshot().events().iter() {
        if let Some(accepted) = event.get::<InboxAccepted>() {
            let fate = Fate { delivery: accepted.delivery, claimed: 0, discarded: 0 };
            assert!(fates.insert(accepted.id, fate).is_none(), "{:?} was accepted twice", accepted.id);
        } else if let Some(InboxClaimed { ids }) = event.get() {
            for id in ids {
                let fate: &mut Fate = fates.get_mut(id).expect("accepted before it is claimed");
                fate.claimed += 1;
                let earlier = last.insert(format!("{:?}", fate.delivery), *id);
                assert!(earlier < Some(*id), "{id:?} was claimed behind {earlier:?}");
            }
        } else if let Some(InboxDiscarded { ids, .. }) = event.get() {
            for id in ids {
                fates.get_mut(id).expect("accepted before it is discarded").discarded += 1;
            }
        }
    }
    assert!(fates.values().all(|fate| fate.claimed <= 1 && fate.discarded <= 1), "{fates:?}");
    fates
}
