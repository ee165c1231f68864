//! A creation that fails, or that nobody waits for: nothing of it is left, and nobody has seen it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent::*;
use context::{BoxError, Stop};
use session::{Session, SessionTitle};
use session_store::MemoryStore;
use tokio::sync::Notify;

use crate::store::{Fails, FakeStore, Left, left};
use crate::support::*;

/// Whether an error is of the kind that is expected.
type IsOf = fn(&CreateError) -> bool;

fn fails() -> Arc<dyn AgentSetup> {
    step(async |_| Err(BoxError::from("no room")))
}

/// A step that registers something and writes to the log.
fn leaves_traces(trace: &Trace) -> Arc<dyn AgentSetup> {
    let trace = trace.clone();
    step(move |agent: AgentRef| {
        let closed = trace.clone();
        let slow = async move || {
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            closed.note("closed");
            Ok(())
        };
        agent.ctx().on_close("slow", slow).unwrap();
        agent.ctx().own(trace.guard("withdrawn")).unwrap();
        agent.session().append(SessionTitle { title: "t".into(), source: "user".into() }).unwrap();
        async { Ok(()) }
    })
}

/// Nobody has seen the agent, and the app works as before.
async fn check_rolled_back(stage: Stage, session: &Session) {
    assert!(stage.is_deserted());
    assert_eq!(stage.heard.take(), [""; 0]);
    assert!(session.append(SessionTitle { title: "late".into(), source: "user".into() }).is_err(), "it is closed");
    stage.close().await;
}

#[tokio::test]
async fn a_step_that_fails_undoes_those_before_it() {
    let is_setup = |error: &CreateError| matches!(error, CreateError::Setup(_));
    let cases: [(&str, Arc<dyn AgentSetup>, IsOf); 3] = [
        ("the agent could not be set up: no room", fails(), is_setup),
        ("the set-up of the agent panicked", step(async |_| panic!("a bug behind a poll")), |error| {
            matches!(error, CreateError::Panicked)
        }),
        (
            "the set-up of the agent panicked",
            step(|_| -> std::future::Ready<Result<(), BoxError>> { panic!("a bug at the call") }),
            |error| matches!(error, CreateError::Panicked),
        ),
    ];
    for (told, broken, kind) in cases {
        for own in [true, false] {
            let store = MemoryStore::default();
            let stage = Stage::with_store(store.clone());
            let trace = Trace::default();
            stage.app.register::<dyn AgentSetup>("first", leaves_traces(&trace)).unwrap();
            // Even what a step made durable by itself is undone.
            let flushes = step(async |agent: AgentRef| Ok(agent.session().flush().await?));
            stage.app.register::<dyn AgentSetup>("second", flushes).unwrap();
            let mut spec = stage.spec();
            let session = spec.session.clone();
            match own {
                true => spec.setup = vec![broken.clone()],
                false => stage.app.register::<dyn AgentSetup>("third", broken.clone()).unwrap(),
            }
            spec.prompt = Some("never read".into());
            let error = in_time(stage.agents.create(&stage.app, spec)).await.err().expect("it fails");
            assert_eq!(error.to_string(), told);
            assert!(kind(&error));
            assert_eq!(trace.take(), ["withdrawn", "closed"], "by the time one hears of it");
            assert_eq!(left(&store, &stage.sessions, session.id()).await, Left::Nothing);
            check_rolled_back(stage, &session).await;
        }
    }
}

/// A step may have handed the agent to others.
#[tokio::test]
async fn whoever_got_hold_of_it_during_the_set_up_holds_one_that_is_gone() {
    let stage = Stage::new();
    let (kept, held) = std::sync::mpsc::channel();
    let mut spec = stage.spec();
    let session = spec.session.clone();
    let keeps = step(move |agent: AgentRef| {
        kept.send((agent.clone(), agent.followup("before it lives").unwrap())).unwrap();
        async { Ok(()) }
    });
    spec.setup = vec![keeps, fails()];
    assert!(in_time(stage.agents.create(&stage.app, spec)).await.is_err());
    let (agent, receipt) = held.recv().unwrap();
    assert_eq!(aborted(&in_time(receipt.outcome()).await), (0, "the agent ended"));
    in_time(agent.when_idle()).await;
    assert_eq!(agent.followup("hello?").unwrap_err(), SendError::Gone);
    check_rolled_back(stage, &session).await;
}

#[tokio::test]
async fn a_store_that_does_not_take_it_is_a_typed_error() {
    let cases: [(Fails, IsOf, &str, &[&str]); 2] = [
        (
            Fails::Create,
            |error| matches!(error, CreateError::Store(session_store::CreateError::Exists { .. })),
            "the session cannot be kept: fake exists already: a session is created once, and opened after that",
            &["create"],
        ),
        (
            Fails::Flush,
            |error| matches!(error, CreateError::Flush(error) if error.full),
            "the session's log could not be written: no space left on device",
            &["create", "flush", "discard"],
        ),
    ];
    for (fails, kind, told, asked) in cases {
        let store = FakeStore::new(fails);
        let stage = Stage::with_store(store.clone());
        let spec = stage.spec();
        let session = spec.session.clone();
        let error = in_time(stage.agents.create(&stage.app, spec)).await.err().expect("it fails");
        assert!(kind(&error), "{error:?}");
        assert_eq!(error.to_string(), told);
        assert_eq!(store.asked(), asked);
        check_rolled_back(stage, &session).await;
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_large_is_the_end_of_it() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let mut spec = stage.spec();
    let session = spec.session.clone();
    spec.prompt = Some("x".repeat(16 * 1024 * 1024 + 1).into());
    let error = in_time(stage.agents.create(&stage.app, spec)).await.err().expect("it fails");
    assert!(matches!(error, CreateError::Prompt(SendError::TooLarge(16_777_217))), "{error:?}");
    assert_eq!(error.to_string(), "the message has 16777217 bytes; an agent takes 16777216 at most");
    assert_eq!(left(&store, &stage.sessions, session.id()).await, Left::Nothing);
    check_rolled_back(stage, &session).await;
}

#[tokio::test]
async fn without_a_driver_nothing_begins() {
    let stage = Stage::without_driver();
    let spec = stage.spec();
    let session = spec.session.clone();
    let error = in_time(stage.agents.create(&stage.app, spec)).await.err().expect("it fails");
    assert!(matches!(error, CreateError::NoDriver));
    assert_eq!(error.to_string(), "no agent driver is provided: the composition lacks the agent loop");
    assert!(stage.is_deserted());
    session.append(SessionTitle { title: "t".into(), source: "user".into() }).expect("it was not touched");
    stage.close().await;
}

#[tokio::test]
async fn an_owner_that_closes_wins() {
    // Before the call.
    let stage = Stage::new();
    let owner = stage.app.child("owner").unwrap();
    in_time(owner.close()).await.unwrap();
    let error = in_time(stage.agents.create(&owner, stage.spec())).await.err().expect("it fails");
    assert!(matches!(error, CreateError::OwnerClosing));
    assert_eq!(error.to_string(), "the owner is closing");
    assert!(stage.is_deserted());
    stage.close().await;

    // In the middle of a step.
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let owner = stage.app.child("owner").unwrap();
    let (trace, reached) = (Trace::default(), Arc::new(Notify::new()));
    stage.app.register::<dyn AgentSetup>("first", leaves_traces(&trace)).unwrap();
    let mut spec = stage.spec();
    let session = spec.session.clone();
    let at_it = reached.clone();
    spec.setup = vec![step(move |_| {
        at_it.notify_one();
        std::future::pending()
    })];
    let creating = stage.agents.create(&owner, spec);
    in_time(reached.notified()).await;
    in_time(owner.close()).await.unwrap();
    assert_eq!(trace.take(), ["withdrawn", "closed"], "before the owner is closed");
    let error = in_time(creating).await.err().expect("it fails");
    assert!(matches!(error, CreateError::OwnerClosing));
    assert_eq!(left(&store, &stage.sessions, session.id()).await, Left::Nothing);
    check_rolled_back(stage, &session).await;
}

/// An app that closes while agents are being made: each is made and ends, or is not made. Nothing is published without
/// being gone in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_closes_at_any_moment_leaves_nothing() {
    for round in 0..200 {
        let store = MemoryStore::default();
        let stage = Stage::with_store(store.clone());
        let owner = Arc::new(stage.app.child("owner").unwrap());
        let closing = owner.clone();
        let closes = async move {
            for _ in 0..round % 20 {
                tokio::task::yield_now().await;
            }
            closing.start_closing();
        };
        let spec = stage.spec();
        let id = spec.session.id();
        let creating = stage.agents.create(&owner, spec);
        stage.app.spawn("closer", Stop::Join, closes).unwrap();
        drop(in_time(creating).await);
        in_time(owner.close()).await.unwrap();
        assert!(stage.is_deserted());
        let heard = stage.heard.take();
        let pair = [format!("published {id}"), format!("gone {id}")];
        assert!(heard.is_empty() || heard == pair, "{heard:?}");
        assert_ne!(left(&store, &stage.sessions, id).await, Left::Leased);
        stage.close().await;
    }
}

/// Whenever its creator stops waiting: before anyone can see the agent it leaves nothing, after that it ends in order.
#[tokio::test]
async fn a_future_that_is_dropped_after_any_number_of_polls_leaves_nothing_live() {
    let (mut unseen, mut published, mut polls) = (0, 0, 0);
    loop {
        let store = MemoryStore::default();
        let stage = Stage::with_store(store.clone());
        let trace = Trace::default();
        stage.app.register::<dyn AgentSetup>("first", leaves_traces(&trace)).unwrap();
        let mut spec = stage.spec();
        let session = spec.session.clone();
        spec.setup = vec![step(async |_| {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            Ok(())
        })];
        let mut creating = Box::pin(stage.agents.create(&stage.app, spec));
        let mut done = false;
        for _ in 0..polls {
            done |= matches!(creating.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(_));
            tokio::task::yield_now().await;
            if done {
                break;
            }
        }
        drop(creating);
        until(|| session.append(SessionTitle { title: "still".into(), source: "user".into() }).is_err()).await;
        until(|| stage.is_deserted()).await;
        // What was registered for it goes, if it ever came so far.
        let titled = |event: &session::Event| event.get::<SessionTitle>().is_some_and(|title| &*title.title == "t");
        let began = session.snapshot().events().iter().any(titled);
        let withdrawn = std::cell::Cell::new(0);
        until(|| {
            withdrawn.set(withdrawn.get() + trace.take().len());
            withdrawn.get() == 2 * usize::from(began)
        })
        .await;
        let heard = stage.heard.take();
        let id = session.id();
        match left(&store, &stage.sessions, id).await {
            Left::Nothing => {
                assert_eq!(heard, [""; 0], "after {polls} polls");
                unseen += 1;
            }
            Left::Free(_) => {
                assert_eq!(heard, [format!("published {id}"), format!("gone {id}")], "after {polls} polls");
                published += 1;
            }
            Left::Leased => panic!("it is let go of after {polls} polls"),
        }
        stage.close().await;
        if done {
            break;
        }
        polls += 1;
    }
    assert!(unseen >= 3 && published >= 1, "{unseen} unseen, {published} published");
}

#[tokio::test]
async fn a_session_drives_one_agent_at_a_time_and_a_second_creation_does_it_no_harm() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    stage.heard.take();
    let error = in_time(stage.agents.create(&stage.app, spec_of(agent.session().clone()))).await;
    let error = error.err().expect("it fails");
    assert!(matches!(error, CreateError::AlreadyLive));
    assert_eq!(error.to_string(), "an agent for this session is live");
    assert_eq!(stage.heard.take(), [""; 0]);
    assert_eq!(stage.agents.list().len(), 1);
    let receipt = agent.followup("still there?").expect("it is");
    stage.turn().await.complete().await;
    assert_eq!(in_time(receipt.outcome()).await.turn, 1);
    assert_eq!(left(&store, &stage.sessions, agent.id()).await, Left::Leased);
    stage.close().await;
}

#[tokio::test]
async fn of_two_creations_at_once_one_is_refused_before_it_does_anything() {
    let stage = Stage::new();
    let trace = Trace::default();
    stage.app.register::<dyn AgentSetup>("first", leaves_traces(&trace)).unwrap();
    let session = stage.session();
    let first = stage.agents.create(&stage.app, spec_of(session.clone()));
    let second = stage.agents.create(&stage.app, spec_of(session.clone()));
    assert!(stage.is_deserted(), "a place that is taken is no agent");
    let (first, second) = in_time(async { tokio::join!(first, second) }).await;
    let agent = first.expect("the first call wins");
    assert!(matches!(second, Err(CreateError::AlreadyLive)));
    assert_eq!(session.len(), 1, "the other's set-up wrote nothing");
    in_time(agent.dispose()).await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_session_whose_agent_ended_may_drive_another() {
    let store = MemoryStore::default();
    let stage = Stage::with_store(store.clone());
    let agent = stage.agent().await;
    agent.inject("for later").unwrap();
    in_time(agent.dispose()).await.unwrap();
    let opened = session_store::SessionStore::open(&store, &stage.sessions, agent.id()).await.unwrap();
    let again = in_time(stage.agents.create(&stage.app, spec_of(opened.session))).await.unwrap();
    assert_eq!(again.id(), agent.id());
    // And what waited still waits.
    again.followup("now").unwrap();
    assert_eq!(stage.turn().await.said, ["for later", "now"]);
    stage.close().await;
}
