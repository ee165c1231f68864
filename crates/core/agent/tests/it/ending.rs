//! The end of an agent, by whatever cause.

use std::sync::Arc;

use agent::*;
use context::{Boxed, CloseError, Failure, Stop};
use futures_util::FutureExt as _;
use session::SessionTitle;
use session_store::MemoryStore;

use crate::store::{Fails, FakeStore, Left, left};
use crate::support::*;

fn failures(closed: Result<(), CloseError>) -> Vec<String> {
    match closed {
        Ok(()) => Vec::new(),
        Err(CloseError::Failed(failures)) => failures.iter().map(Failure::to_string).collect(),
        Err(within) => panic!("{within}"),
    }
}

#[tokio::test]
async fn disposing_stops_the_turn_settles_every_receipt_and_lets_go_of_the_log() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    let trace = Trace::default();
    agent.ctx().own(trace.guard("withdrawn")).unwrap();
    stage.heard.take();
    let open = agent.followup("open").unwrap();
    let turn = stage.turn().await;
    let waiting = [agent.followup("waits").unwrap(), agent.inject("waits too").unwrap()];
    let mut idle = Box::pin(agent.when_idle());
    assert!((&mut idle).now_or_never().is_none());
    let (one, two) = in_time(async { tokio::join!(agent.dispose(), agent.dispose()) }).await;
    assert_eq!((failures(one), failures(two)), (Vec::new(), Vec::new()));
    assert!(turn.cancelled.is_cancelled());
    assert_eq!(trace.take(), ["withdrawn"]);
    assert_eq!(stage.heard.take(), [format!("gone {}", agent.id())], "once");
    assert!(stage.is_deserted() && agent.is_idle());
    in_time(idle).await;
    let outcome = in_time(open.outcome()).await;
    assert_eq!((outcome.turn, outcome.reason), (1, session::TurnReason::Aborted { cause: None }));
    for receipt in waiting {
        assert_eq!(aborted(&in_time(receipt.outcome()).await), (0, "the agent ended"));
    }
    for send in [AgentRef::followup, AgentRef::steer, AgentRef::inject] {
        assert_eq!(send(agent.handle(), "late".to_owned()).unwrap_err(), SendError::Gone);
    }
    assert_eq!(SendError::Gone.to_string(), "the agent is gone");
    assert!(!agent.cancel("late", Inbox::Discard));
    in_time(agent.when_idle()).await;
    assert_eq!(failures(in_time(agent.dispose()).await), [""; 0], "idempotent");
    let accepted = "inbox/accepted".to_owned();
    let brought_in = ["turn/start", "user/message", "turn/end"].map(String::from);
    let mut want = vec![accepted.clone(), "inbox/claimed".into(), accepted.clone(), accepted];
    want.extend(brought_in);
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Free(want), "what waits is not lost");
    stage.close().await;
}

/// What ends with an agent has ended before its log is let go of, and may say so there.
#[tokio::test]
async fn the_log_is_kept_until_all_that_the_agent_owns_has_ended() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    let (winds_up, log, hold) = (agent.ctx().clone(), agent.session().clone(), agent.hold_log());
    let goes_on = Arc::new(tokio::sync::Notify::new());
    let go_on = goes_on.clone();
    let work = async move {
        winds_up.cancelled().cancelled().await;
        go_on.notified().await;
        let title = SessionTitle { title: "last words".into(), source: "user".into() };
        assert!(log.append(title.clone()).is_err());
        log.append_last_words(title).unwrap();
        drop(hold);
    };
    agent.ctx().spawn("work", Stop::Join, work).unwrap();
    let mut disposed = Box::pin(agent.dispose());
    assert!((&mut disposed).now_or_never().is_none());
    until(|| agent.session().append_of_pending(|_| None::<SessionTitle>).is_err()).await;
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Leased);
    goes_on.notify_one();
    assert_eq!(failures(in_time(disposed).await), [""; 0]);
    let want = vec!["session/title".to_owned()];
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Free(want));
    stage.close().await;
}

#[tokio::test]
async fn dropping_an_agent_begins_to_dispose_it_and_leaving_it_does_not() {
    let stage = Stage::new();
    let (dropped, left) = (stage.agent().await, stage.agent().await);
    let (gone, kept) = (dropped.handle().clone(), left.leave());
    drop(dropped);
    in_time(gone.ctx().closed()).await;
    assert!(stage.agents.get(gone.id()).is_none());
    kept.followup("still here").unwrap();
    stage.turn().await.complete().await;
    let (heard, agents, id) = (stage.heard.clone(), stage.agents.clone(), kept.id());
    heard.take();
    stage.close().await;
    assert_eq!(heard.take(), [format!("gone {id}")], "its owner's closing closes it");
    assert!(agents.get(id).is_none());
}

#[tokio::test]
async fn an_owner_takes_its_agents_along_children_first() {
    let stage = Stage::new();
    let owner = stage.app.child("owner").unwrap();
    let parent = stage.owned_by(&owner).await;
    let child = stage.owned_by(parent.ctx()).await;
    let grandchild = stage.owned_by(child.ctx()).await;
    stage.heard.take();
    in_time(owner.close()).await.unwrap();
    let want = [&grandchild, &child, &parent].map(|agent| format!("gone {}", agent.id()));
    assert_eq!(stage.heard.take(), want);
    stage.close().await;
}

#[tokio::test]
async fn what_an_agent_cannot_keep_is_told_to_who_disposes_it() {
    let store = FakeStore::new(Fails::Close);
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    let told = "agent/agent: the session's log could not be written: no space left on device";
    assert_eq!(failures(in_time(agent.dispose()).await), [told]);
    assert!(stage.is_deserted());
    stage.close().await;
}

/// Ends in one way or another.
struct Ends(fn(Driven) -> Boxed<'static, ()>);

impl AgentDriver for Ends {
    fn drive(&self, driven: Driven) -> Boxed<'static, ()> {
        (self.0)(driven)
    }
}

/// Whatever becomes of a driver, nobody waits for it, and its session is free.
#[tokio::test]
async fn an_agent_whose_driver_ends_is_gone_and_a_panic_is_reported_at_its_closing() {
    let panicked = &["agent/agent: the agent's driver panicked"][..];
    let cases: [(&str, Ends, &[&str], &[&str]); 4] = [
        ("at the call", Ends(|_| panic!("a bug at the call")), panicked, &["inbox/accepted"]),
        ("before a turn", Ends(|_driven| Box::pin(async { panic!("a bug") })), panicked, &["inbox/accepted"]),
        (
            "in a turn",
            Ends(|driven| {
                Box::pin(async move {
                    let opening = driven.next_turn().await.expect("there is a prompt");
                    driven.agent().session().append(SessionTitle { title: "t".into(), source: "user".into() }).unwrap();
                    panic!("a bug with {} messages", opening.messages.len())
                })
            }),
            panicked,
            &["inbox/accepted", "inbox/claimed", "session/title", "turn/start", "user/message", "turn/end"],
        ),
        ("quietly", Ends(|_| Box::pin(async {})), &[], &["inbox/accepted"]),
    ];
    for (when, driver, reported, log) in cases {
        let store = MemoryStore::default();
        let stage = Stage::without_driver();
        stage.app.provide::<dyn session_store::SessionStore>(Arc::new(store.clone())).unwrap();
        stage.app.provide::<dyn AgentDriver>(Arc::new(driver)).unwrap();
        let mut spec = stage.spec();
        spec.prompt = Some("hello".into());
        let mut agent = in_time(stage.agents.create(&stage.app, spec)).await.unwrap();
        let receipt = agent.prompted().unwrap();
        assert_eq!(aborted(&in_time(receipt.outcome()).await), (0, "the agent ended"), "{when}");
        in_time(agent.when_idle()).await;
        assert_eq!(agent.followup("late").unwrap_err(), SendError::Gone, "{when}");
        assert_eq!(failures(in_time(agent.dispose()).await), reported, "{when}");
        let log = log.iter().map(|tag| (*tag).to_owned()).collect();
        assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Free(log), "{when}");
        assert!(stage.is_deserted());
        assert_eq!(stage.heard.take(), ["published", "gone"].map(|what| format!("{what} {}", agent.id())));
        stage.close().await;
    }
}

#[tokio::test]
async fn whoever_waits_for_an_agent_to_be_idle_hears_of_its_end() {
    let stage = Stage::without_driver();
    let stop = Arc::new(tokio::sync::Notify::new());
    stage.app.provide(stop.clone()).unwrap();
    let unsettled = Ends(|driven| {
        Box::pin(async move {
            let _opening = driven.next_turn().await.expect("there is a message");
            let stop = driven.agent().ctx().get::<tokio::sync::Notify>().expect("it is provided");
            stop.notified().await;
        })
    });
    stage.app.provide::<dyn AgentDriver>(Arc::new(unsettled)).unwrap();
    let agent = stage.agent().await;
    agent.followup("never settled").unwrap();
    let mut idle = Box::pin(agent.when_idle());
    assert!((&mut idle).now_or_never().is_none());
    stop.notify_one();
    in_time(idle).await;
    stage.close().await;
}

#[tokio::test]
async fn a_panicking_agent_leaves_the_others_alone() {
    let stage = Stage::without_driver();
    let driver = Ends(|driven| {
        Box::pin(async move {
            while let Some(opening) = driven.next_turn().await {
                assert_ne!(opening.messages[0].message.text(), "panic", "a bug");
                driven.settle(&opening, TurnOutcome::completed(1, None));
            }
        })
    });
    stage.app.provide::<dyn AgentDriver>(Arc::new(driver)).unwrap();
    let (bad, good) = (stage.agent().await, stage.agent().await);
    in_time(bad.followup("panic").unwrap().outcome()).await;
    assert_eq!(in_time(good.followup("hello").unwrap().outcome()).await.turn, 1);
    assert_eq!(failures(in_time(bad.dispose()).await).len(), 1);
    stage.close().await;
}

#[tokio::test]
async fn an_agent_that_closes_while_a_turn_would_open_opens_none() {
    let stage = Stage::new();
    let agent = stage.agent().await;
    agent.followup("too late").unwrap();
    agent.ctx().cancelled().cancel();
    in_time(agent.dispose()).await.unwrap();
    assert!(stage.is_quiet());
    assert_eq!(tags(agent.session()), ["inbox/accepted"], "it is not claimed, so it is not lost");
    stage.close().await;
}
