//! How an agent is told.

use std::sync::Arc;

use agent::{Inbox, PENDING_LIMIT};
use jobs::{JobState, NOTICE_LIMIT, NOTICES_LIMIT, NewJob, Outcome, Reader};
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
async fn a_full_inbox_holds_up_nobody_and_loses_nothing() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    for _ in 1..PENDING_LIMIT {
        agent.followup("more").unwrap();
    }
    agent.inject("by the way").unwrap();
    for _ in 0..3 {
        let id = stage.jobs.start(&agent, job(), |_| async { Outcome::completed("done") }).unwrap();
        assert_eq!(in_time(stage.jobs.ended(&agent, id)).await.unwrap().state, JobState::Completed);
        assert_eq!(in_time(stage.jobs.kill(&agent, id)).await.unwrap().state, JobState::Completed);
    }
    stage.settled(&agent).await;
    assert_eq!(notices(agent.session()), [""; 0], "the turn is open, and there is no room");
    stage.held.send_replace(false);
    in_time(agent.when_idle()).await;
    let told: String = (1..=3).map(|n| DONE.replace("job-1", &format!("job-{n}")) + "\n").collect();
    assert_eq!(notices(agent.session()), [told.trim_end()], "one message tells all of them");
    assert_eq!(stage.read(&agent).iter().filter(|(_, text)| *text == told.trim_end()).count(), 1);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn a_notice_outlives_an_inbox_full_of_quiet_messages() {
    let stage = Stage::new().await;
    let agent = stage.agent().await;
    for _ in 0..PENDING_LIMIT {
        agent.inject("by the way").unwrap();
    }
    stage.jobs.start(&agent, job(), |_| async { Outcome::completed("done") }).unwrap();
    stage.settled(&agent).await;
    assert!(agent.is_idle() && notices(agent.session()).is_empty());
    agent.cancel("never mind", Inbox::Discard);
    in_time(agent.when_idle()).await;
    stage.readings(1).await;
    assert_eq!(stage.read(&agent), [("turn", DONE.to_owned())]);
    stage.app.close().await.unwrap();
}

#[tokio::test]
async fn what_one_step_repeats_is_bounded() {
    let stage = Stage::new().await;
    stage.app.provide(Arc::new(Reader("read_it".into()))).unwrap();
    let agent = stage.agent().await;
    stage.held.send_replace(true);
    agent.followup("work").unwrap();
    stage.readings(1).await;
    for _ in 0..200 {
        let id = stage.jobs.start(&agent, job(), |_| async { Outcome::completed("x".repeat(NOTICE_LIMIT)) });
        in_time(stage.jobs.ended(&agent, id.unwrap())).await.unwrap();
    }
    let told = notices(agent.session());
    let repeated = told.iter().filter(|told| told.len() > NOTICE_LIMIT).count();
    assert!(
        repeated >= 2 && told.iter().filter(|told| told.contains("read it with `read_it`")).count() == 200 - repeated
    );
    assert!(told.concat().len() < NOTICES_LIMIT + 200 * 120, "{}", told.concat().len());
    stage.held.send_replace(false);
    in_time(agent.when_idle()).await;
    stage.jobs.start(&agent, job(), |_| async { Outcome::completed("x".repeat(NOTICE_LIMIT)) }).unwrap();
    stage.settled(&agent).await;
    assert!(notices(agent.session()).pop().unwrap().len() > NOTICE_LIMIT, "the next step has room again");
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
