//! Checkpoints: before every request and at the end of every turn.

use std::sync::{Arc, Mutex};

use context::Boxed;
use session::{Backing, FlushError, Session, Snapshot, TurnEnd, TurnReason};
use session_store::{MemoryStore, SessionStore};

use crate::model::*;
use crate::support::*;

/// Notes the type of the last event of what it is asked to flush; fails where it is told to.
#[derive(Clone, Default)]
struct Disk {
    flushed: Trace,
    fail_at: Arc<Mutex<Option<&'static str>>>,
}

impl Backing for Disk {
    fn hint(&self, _: &Snapshot) {}

    fn flush(&self, log: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        let last = log.events().last().map_or("", |event| event.tag()).to_owned();
        let broken = *self.fail_at.lock().unwrap() == Some(&*last);
        self.flushed.note(last);
        let error = FlushError { message: "no space left on device".into(), full: true };
        Box::pin(async move { if broken { Err(error) } else { Ok(()) } })
    }

    fn close(&self, _: Snapshot) -> Boxed<'static, Result<(), FlushError>> {
        self.flushed.note("close");
        Box::pin(async { Ok(()) })
    }

    fn discard(&self) -> Boxed<'static, ()> {
        unreachable!("no creation fails here")
    }
}

async fn on_disk() -> (Stage, agent::Agent, Disk) {
    let stage = Stage::new().await;
    let disk = Disk::default();
    let session: Session = stage.sessions.create("/home/me/project");
    session.attach(Arc::new(disk.clone())).unwrap();
    let agent = stage.agent_of(session).await;
    assert_eq!(disk.flushed.take(), [""], "its creation");
    (stage, agent, disk)
}

#[tokio::test]
async fn the_log_is_flushed_before_every_request_and_at_the_turns_end() {
    let (stage, agent, disk) = on_disk().await;
    stage.tools(&["read"]);
    let (flushed, asked) = (disk.flushed.clone(), Trace::default());
    let notes = |what: &'static str| {
        let (flushed, asked) = (flushed.clone(), asked.clone());
        act(move || asked.note(format!("{what} after {:?}", flushed.take())))
    };
    stage.model.reply_with([
        vec![notes("first"), call("read"), end(llm::Finish::Stop)],
        vec![notes("second"), text("done"), end(llm::Finish::Stop)],
    ]);
    turn(&agent, "go").await;
    assert_eq!(asked.take(), [r#"first after ["request/header"]"#, r#"second after ["step/start"]"#]);
    assert_eq!(disk.flushed.take(), ["turn/end"]);
    in_time(agent.dispose()).await.unwrap();
    assert_eq!(disk.flushed.take(), ["close"]);
    stage.close().await;
}

const FULL: &str = "the session's log could not be written: no space left on device";

#[tokio::test]
async fn what_cannot_be_made_durable_is_not_asked_about() {
    let (stage, agent, disk) = on_disk().await;
    *disk.fail_at.lock().unwrap() = Some("request/header");
    let outcome = turn(&agent, "go").await;
    assert_eq!(error_of(&outcome), FULL);
    assert!(stage.model.requests().is_empty());
    assert_eq!(agent.session().latest::<TurnEnd>().unwrap().reason, outcome.reason, "and the log says why");
    // There is room again.
    *disk.fail_at.lock().unwrap() = None;
    assert_eq!(turn(&agent, "and now?").await.reason, TurnReason::Completed);
    stage.close().await;
}

#[tokio::test]
async fn a_turn_whose_end_is_not_durable_is_not_completed() {
    let (stage, agent, disk) = on_disk().await;
    *disk.fail_at.lock().unwrap() = Some("turn/end");
    let outcome = turn(&agent, "go").await;
    assert_eq!(error_of(&outcome), FULL);
    assert_eq!(outcome.output.unwrap().text(), "done");
    // One that failed anyhow keeps its own reason.
    stage.model.reply_with([vec![text("half")]]);
    let outcome = turn(&agent, "go").await;
    assert_eq!(error_of(&outcome), "the model's reply was cut off before its end");
    stage.close().await;
}

#[tokio::test]
async fn whoever_hears_the_outcome_finds_the_turn_in_the_store() {
    let stage = Stage::new().await;
    let store = MemoryStore::default();
    stage.app.provide::<dyn SessionStore>(Arc::new(store.clone())).unwrap();
    let agent = stage.agent().await;
    for n in 1..=3 {
        turn(&agent, "go").await;
        let reading = store.read(&stage.sessions.vocabulary(), agent.id()).await.unwrap();
        let log = reading.decoded.log();
        assert_eq!((log.latest::<TurnEnd>().unwrap().turn, log.len()), (n, agent.session().len()));
    }
    stage.close().await;
}
