//! How an agent is told.

use std::sync::Arc;

use agent::PENDING_LIMIT;
use jobs::{NOTICE_LIMIT, NewJob, Outcome, Reader};
use session::{Delivery, InboxAccepted, Source};
use tools::ToolFilter;

use crate::support::{Stage, in_time, notices};

fn job() -> NewJob {
    NewJob::new("bash", "make")
}

const DONE: &str = "<notice>\njob-1 (bash: make) completed:\ndone\n</notice>";

#[tokio::test]
async fn an_idle_agent_is_woken() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    stage.jobs.start(&agent, job(), |_| async { Outcome::completed("done") }).unwrap();
    stage.settled(&agent).await;
    stage.readings(1).await;
    assert_eq!(stage.read(&agent), [("turn", DONE.to_owned())]);
    let accepted = agent.session().snapshot().latest::<InboxAccepted>().cloned().unwrap();
    assert_eq!((accepted.source, accepted.delivery), (Source::Notice, Delivery::Steer));
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn an_open_turn_hears_of_it_at_its_next_step() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    stage.jobs.start(&agent, job(), |_| async { Outcome::completed("done") }).unwrap();
    stage.settled(&agent).await;
    assert_eq!(agent.session().pending_len(), 1, "it is accepted by the time that everything is settled");
    stage.held.send_replace(false);
    in_time(agent.when_idle()).await;
    assert_eq!(stage.read(&agent), [("turn", "work".to_owned()), ("step", DONE.to_owned())]);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_full_inbox_is_waited_for() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    for _ in 0..PENDING_LIMIT {
        agent.followup("more").unwrap();
    }
    stage.jobs.start(&agent, job(), |_| async { Outcome::completed("done") }).unwrap();
    stage.held.send_replace(false);
    stage.settled(&agent).await;
    in_time(agent.when_idle()).await;
    assert_eq!(stage.read(&agent).last().unwrap(), &("turn", DONE.to_owned()));
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn long_output_is_pointed_at_where_it_can_be_read() {
    let stage = Stage::new().await;
    stage.app.provide(Arc::new(Reader("read_it".into()))).unwrap();
    let (agent, held) = (stage.agent().await, stage.agent().await);
    held.ctx().register("held", Arc::new(ToolFilter::denying(["read_it"]))).unwrap();
    let long = || "x".repeat(NOTICE_LIMIT + 1);
    for agent in [&agent, &held] {
        let text = long();
        stage.jobs.start(agent, job(), |_| async { Outcome::completed(text) }).unwrap();
        stage.settled(agent).await;
    }
    let pointed =
        "<notice>\njob-1 (bash: make) completed. Its output has 8193 bytes: read it with `read_it`.\n</notice>";
    assert_eq!(notices(agent.session()), [pointed]);
    assert!(notices(held.session())[0].contains(&long()), "who may not read is told everything");
    stage.app.close().await.unwrap();
}
