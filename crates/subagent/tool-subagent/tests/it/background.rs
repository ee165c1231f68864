//! Children that go on behind their call.

use std::sync::Arc;

use agent::{AgentRef, AgentSetup, Inbox};
use async_trait::async_trait;
use context::BoxError;
use jobs::JobState;
use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde_json::json;
use session::{RequestHeaderEvent, UserMessage};
use subagent::{ChildStarted, OutputSchema, Subagents};
use tokio::sync::watch;
use tool_subagent::Config;

use crate::doubles::{Endless, Gate};
use crate::stage::{Stage, is_child, named, within};

pub(crate) async fn gated() -> (Stage, Arc<Gate>) {
    let gate = Gate::new();
    let stage = Stage::with(|plugins| plugins, |app| gate.put_into(app)).await.unwrap();
    (stage, gate)
}

/// Waits until every job of the agent has ended, and it has read what it was told.
pub(crate) async fn settled(stage: &Stage) {
    stage.jobs().settled(&stage.agent).await;
    stage.agent.when_idle().await;
}

fn states(stage: &Stage) -> Vec<JobState> {
    stage.jobs().list(&stage.agent).iter().map(|job| job.state).collect()
}

// D-22
#[tokio::test]
async fn a_child_in_the_background_is_a_job_and_its_end_is_told() {
    within(async {
        let (stage, gate) = gated().await;
        let outcome =
            stage.tell("spawn A in background { call gate; write a.txt hi; say A is done }; say started").await;
        assert_eq!(outcome.output.unwrap().text(), "started");
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @"[ok] job-1: the child (session CHILD-1) is at work. You are told when it is done.");
        assert_eq!((states(&stage), stage.notices(), stage.file("a.txt")), (vec![JobState::Running], vec![], None));
        gate.open();
        settled(&stage).await;
        assert_eq!((states(&stage), stage.file("a.txt").as_deref()), (vec![JobState::Completed], Some("hi")));
        assert!(stage.is_alone());
        insta::assert_snapshot!(stage.notices().join("\n"), @r"
        <notice>
        job-1 (subagent: A) completed:
        A is done
        </notice>
        ");
        let said: Vec<String> =
            stage.agent.session().messages().unwrap().iter().map(|message| message.text()).collect();
        assert_eq!(stage.plain(said.last().unwrap()), "noted\n  job-1 (subagent: A) completed:\n  A is done");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn a_notice_says_what_the_answer_would_have() {
    within(async {
        let schema = OutputSchema::new(json!({ "type": "object" })).unwrap();
        let count = Config { output_schema: Some(schema), ..Config::new("count", "spawn") };
        let stage = Stage::with_tools([count], |_| {}).await;
        stage.agent.session().append(ModeSet::by_user(Mode::ReadOnly)).unwrap();
        let scripts = [
            ("", "write a.txt x; say I did what I could"),
            ("", "list"),
            ("", "say half & fail truncated"),
            ("", "refuse"),
            ("via count", "call submit_result {\"n\": 3}"),
            ("via count", "write a.txt x; say nothing to hand in"),
        ];
        let mut all = Vec::new();
        for (number, (via, script)) in (1..).zip(scripts) {
            let answer = stage.answer(&format!("spawn x {via} {{ {script} }}")).await;
            stage.tell(&format!("spawn x in background {via} {{ {script} }}")).await;
            settled(&stage).await;
            let notice = stage.notices().pop().unwrap();
            let (code, said) = answer.split_once(' ').unwrap();
            let ended = if code == "[ok]" { "completed" } else { "failed" };
            let tool = via.strip_prefix("via ").unwrap_or("subagent");
            assert_eq!(notice, format!("<notice>\njob-{number} ({tool}: x) {ended}:\n{said}\n</notice>"));
            all.push(notice);
        }
        assert_eq!(stage.notices(), all, "one each");
        insta::assert_snapshot!(all[0], @r"
        <notice>
        job-1 (subagent: x) completed:
        I did what I could

        Denied to the child, by the scope that you handed down:
        - write /ws/a.txt (mode read-only)
        </notice>
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

/// Switches the parent while its child is being set up.
struct Switches;

#[async_trait]
impl AgentSetup for Switches {
    async fn set_up(&self, agent: &AgentRef) -> Result<(), BoxError> {
        if is_child(agent.session()) {
            let agents = agent.ctx().get::<agent::Agents>().unwrap();
            let parent = agent.session().header().lineage().unwrap().parent();
            agents.get(parent).unwrap().session().append(ModeSet::by_user(Mode::ReadOnly))?;
        }
        Ok(())
    }
}

// D-01, D-03
#[tokio::test]
async fn the_scope_is_captured_at_the_call() {
    within(async {
        let switches = |app: &context::Scope| named::<dyn AgentSetup>(app, "switches", Arc::new(Switches));
        let stage = Stage::with(|plugins| plugins, switches).await.unwrap();
        stage.agent.session().append(ModeSet::by_user(Mode::WorkspaceWrite)).unwrap();
        stage.tell("spawn x in background { write a.txt x }").await;
        settled(&stage).await;
        assert_eq!(stage.file("a.txt").as_deref(), Some("x"), "the parent was switched after the call");
        stage.tell("spawn x in background { write b.txt x }").await;
        settled(&stage).await;
        assert_eq!(stage.file("b.txt"), None);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-22, D-26
#[tokio::test]
async fn a_start_that_is_refused_is_an_error_at_once() {
    within(async {
        let none = Config { max_depth: Some(0), ..Config::new("none", "spawn") };
        let stage = Stage::with_tools([none], |_| {}).await;
        let answer = stage.answer("spawn in background via none { say x }").await;
        insta::assert_snapshot!(answer, @"[failed] the child was not started: a child at depth 1 would pass the limit of 0: delegation is forbidden");
        assert!(stage.jobs().list(&stage.agent).is_empty() && stage.jobs().running(&stage.agent) == 0);
        assert!(stage.had_no_child());
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn no_child_is_started_that_could_not_stay() {
    within(async {
        let gate = Gate::new();
        let one = jobs::Config { running: 1, ..jobs::Config::default() };
        let stage = Stage::with(
            |plugins| plugins.without("jobs").unwrap(),
            |app| {
                gate.put_into(app);
                app.provide(jobs::Jobs::new(app, one)).unwrap();
            },
        )
        .await
        .unwrap();
        stage.tell("spawn in background { call gate }").await;
        let answer = stage.answer("spawn in background { write never.txt x }").await;
        insta::assert_snapshot!(answer, @"[failed] the child was not started: 1 jobs are running, and there may not be more: wait for one to end, or kill one");
        assert_eq!((stage.children().len(), stage.file("never.txt")), (1, None));
        gate.open();
        settled(&stage).await;
        stage.tell("spawn in background { write now.txt x }").await;
        settled(&stage).await;
        assert!(stage.file("now.txt").is_some());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn the_child_outlives_the_turn() {
    within(async {
        let (stage, gate) = gated().await;
        let receipt =
            stage.agent.followup("spawn A in background { call gate; write a.txt x; say done }; hang").unwrap();
        gate.arrived(1).await;
        assert!(stage.agent.cancel("the user said so", Inbox::Keep));
        receipt.outcome().await;
        assert_eq!(states(&stage), [JobState::Running]);
        gate.open();
        stage.jobs().settled(&stage.agent).await;
        assert_eq!(stage.file("a.txt").as_deref(), Some("x"));
        assert_eq!(stage.notices(), ["<notice>\njob-1 (subagent: A) completed:\ndone\n</notice>"]);
        stage.agent.cancel("over", Inbox::Discard);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-22, D-25
#[tokio::test]
async fn a_call_that_is_cancelled_before_the_child_is_there_starts_none() {
    within(async {
        let stage = Stage::with_tools([Config::new("ask", "endless")], |_| {}).await;
        let starting = watch::Sender::new(false);
        let subagents = stage.app.get::<Subagents>().unwrap();
        let registered = subagents.register("endless", Arc::new(Endless(starting.clone()))).unwrap();
        let receipt = stage.agent.followup("spawn in background via ask { x }").unwrap();
        starting.subscribe().wait_for(|begun| *begun).await.unwrap();
        stage.agent.cancel("the user said so", Inbox::Keep);
        receipt.outcome().await;
        assert_eq!(stage.shown(&stage.results()[0]), "[failed] the child was not started: the start was cancelled");
        assert!(stage.jobs().list(&stage.agent).is_empty() && stage.jobs().running(&stage.agent) == 0);
        drop(registered);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_call_that_is_cancelled_as_the_child_appears_disposes_of_it() {
    within(async {
        let stage = Stage::new().await;
        let agent = stage.agent.handle().clone();
        let _cancels = stage.app.realm().on(move |_: &ChildStarted| {
            agent.cancel("the user said so", Inbox::Keep);
        });
        stage.tell("spawn in background { hang }").await;
        assert_eq!(stage.shown(&stage.results()[0]), "[cancelled] the child was cancelled");
        assert!(stage.is_alone() && stage.jobs().list(&stage.agent).is_empty());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-25
#[tokio::test]
async fn a_job_that_is_killed_takes_its_child_along() {
    within(async {
        let (stage, gate) = gated().await;
        stage.tell("spawn A in background { call gate; write a.txt x }").await;
        gate.arrived(1).await;
        assert_eq!(
            stage.answer("call job_kill {\"job\": \"job-1\"}").await,
            "[ok] job-1 (subagent: A) was killed after 0 s"
        );
        assert!(stage.is_alone());
        gate.open();
        settled(&stage).await;
        assert_eq!((stage.file("a.txt"), stage.notices()), (None, vec![]));
        insta::assert_snapshot!(stage.answer("call job_output {\"job\": \"job-1\"}").await, @r"
        [ok] job-1 (subagent: A) was killed after 0 s:
        the child was cancelled
        ");
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-25, D-49
#[tokio::test]
async fn a_child_ends_with_its_parent_and_nothing_pretends_otherwise() {
    within(async {
        let (stage, gate) = gated().await;
        stage.tell("spawn A in background { call gate; write a.txt x }").await;
        gate.arrived(1).await;
        stage.agent.dispose().await.unwrap();
        gate.open();
        assert!(stage.app.get::<agent::Agents>().unwrap().list().is_empty());
        assert_eq!((stage.file("a.txt"), stage.notices()), (None, vec![]));
        let store = stage.app.get::<dyn session_store::SessionStore>().unwrap();
        let house = stage.agent.session().house().clone();
        let session = store.open(&house, stage.agent.id()).await.unwrap().session;
        assert_eq!(session.pending_len(), 0);
        let spec = agent::Spec::new(session, agent::Profile::clone(&stage.agent.profile()));
        let again = stage.app.get::<agent::Agents>().unwrap().create(&stage.app, spec).await.unwrap();
        assert!(stage.jobs().list(&again).is_empty() && again.is_idle());
        again.dispose().await.unwrap();
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-49
#[tokio::test]
async fn a_notice_that_nobody_read_yet_is_read_after_a_restart() {
    within(async {
        let (stage, gate) = gated().await;
        let receipt = stage.agent.followup("spawn A in background { say done } & call gate").unwrap();
        gate.arrived(1).await;
        stage.jobs().settled(&stage.agent).await;
        assert_eq!(stage.notices().len(), 1, "it is on the disk by then");
        stage.agent.dispose().await.unwrap();
        drop(receipt);
        let store = stage.app.get::<dyn session_store::SessionStore>().unwrap();
        let house = stage.agent.session().house().clone();
        let session = store.open(&house, stage.agent.id()).await.unwrap().session;
        let spec = agent::Spec::new(session, agent::Profile::clone(&stage.agent.profile()));
        let again = stage.app.get::<agent::Agents>().unwrap().create(&stage.app, spec).await.unwrap();
        gate.open();
        again.when_idle().await;
        let log = again.session().snapshot();
        let read = log.events().iter().filter_map(|event| event.get::<UserMessage>());
        assert_eq!(read.filter(|message| message.source == session::Source::Notice).count(), 1);
        again.dispose().await.unwrap();
        stage.app.close().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_the_model_is_offered_stays_the_same() {
    within(async {
        let stage = Stage::new().await;
        stage.tell("spawn in background { say x }").await;
        settled(&stage).await;
        stage.tell("call job_list; spawn { say y }").await;
        let log = stage.agent.session().snapshot();
        let headers = log.events().iter().filter(|event| event.get::<RequestHeaderEvent>().is_some()).count();
        assert_eq!(headers, 1);
        assert_eq!(stage.shown_to(stage.children()[0]), stage.shown_to(stage.agent.id()));
        stage.app.close().await.unwrap();
    })
    .await;
}
