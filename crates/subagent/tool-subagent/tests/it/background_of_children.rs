//! What children leave in the background, and what is told of it.

use std::sync::Arc;

use agent::{AgentRef, Agents, Inbox};
use context::Scope;
use jobs::JobState;
use llm::LlmAdapter;
use serde_json::json;
use session::TurnEnd;
use subagent::{BackgroundReport, DelegationReport, OutputSchema, StopReason, denials_in};
use tool_subagent::Config;

use crate::background::{gated, settled};
use crate::doubles::{Gate, Late};
use crate::stage::{Stage, named, within};

/// What children in the background left in the agent's log.
fn reports(stage: &Stage) -> Vec<DelegationReport> {
    let log = stage.agent.session().snapshot();
    log.events().iter().filter_map(|event| event.get::<BackgroundReport>()).map(|report| report.0.clone()).collect()
}

fn child(stage: &Stage) -> AgentRef {
    stage.app.get::<Agents>().unwrap().get(stage.children()[0]).unwrap()
}

async fn counting() -> (Stage, Arc<Gate>) {
    let gate = Gate::new();
    let schema = OutputSchema::new(json!({ "type": "object" })).unwrap();
    let count = Config { output_schema: Some(schema), ..Config::new("count", "spawn") };
    let stage = Stage::with_tools([count], |app| gate.put_into(app)).await;
    (stage, gate)
}

// D-32
#[tokio::test]
async fn the_log_holds_the_report_whether_or_not_anybody_reads_the_job() {
    within(async {
        let stage = Stage::new().await;
        stage.tell("spawn x in background { write ../a.txt x; say done }").await;
        settled(&stage).await;
        let [report] = &reports(&stage)[..] else { panic!("one report") };
        assert_eq!((&*report.provider, report.stop_reason), ("spawn", StopReason::Completed));
        assert_eq!((report.child, report.denials.total), (Some(stage.children()[0]), 1));
        let read = "call job_output {\"job\": \"job-1\"}";
        insta::assert_snapshot!(stage.answer(read).await, @r"
        [ok] job-1 (subagent: x) completed after 0 s:
        done

        Denied to the child, by the scope that you handed down:
        - write /a.txt (mode workspace-write)
        ");
        assert!(stage.results().pop().unwrap().meta.is_none());
        assert_eq!(denials_in(&stage.agent.session().snapshot(), 0).total, 1, "counted once");
        let file = stage.log(stage.agent.id());
        assert!(file.events().iter().any(|event| event.tag() == "subagent/report" && event.is_ignorable()));
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn a_child_that_was_killed_has_its_report_too() {
    within(async {
        let (stage, gate) = gated().await;
        stage.tell("spawn A in background { write ../a.txt x; call gate; hang }").await;
        gate.arrived(1).await;
        stage.tell("call job_kill {\"job\": \"job-1\"}").await;
        let [report] = &reports(&stage)[..] else { panic!("one report") };
        assert_eq!((report.stop_reason, report.denials.total), (StopReason::Aborted, 1));
        assert_eq!(denials_in(&stage.agent.session().snapshot(), 0).total, 1);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn a_child_that_ends_with_its_parent_has_its_report_too() {
    within(async {
        let (stage, gate) = gated().await;
        stage.tell("spawn A in background { write ../a.txt x; call gate; hang }").await;
        gate.arrived(1).await;
        stage.agent.dispose().await.unwrap();
        let log = stage.log(stage.agent.id());
        let [report] = &log.events().iter().filter_map(|event| event.get::<BackgroundReport>()).collect::<Vec<_>>()[..]
        else {
            panic!("one report")
        };
        assert_eq!((report.0.stop_reason, report.0.denials.total), (StopReason::Aborted, 1));
        assert_eq!(denials_in(&log, 0).total, 1);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-32
#[tokio::test]
async fn denials_behind_a_job_reach_the_parent_once() {
    within(async {
        let stage = Stage::new().await;
        let read = "call job_output {\"job\": \"job-1\", \"wait_ms\": 60000}";
        let reads = format!("{read}; {read}; ");
        for reads in ["", &reads] {
            let script = format!("spawn A {{ spawn B in background {{ write ../b.txt x }}; {reads}say A is done }}");
            let answer = stage.answer(&script).await;
            let denied =
                "Denied to the child, by the scope that you handed down:\n- write /b.txt (mode workspace-write)";
            // What B itself said of it reaches A as prose, indented.
            assert!(answer.ends_with(&format!("\n\n{denied}")), "{answer}");
            let report = stage.results().pop().unwrap().meta.clone().unwrap();
            assert_eq!(serde_json::from_str::<DelegationReport>(report.get()).unwrap().denials.total, 1, "{answer}");
        }
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-24
#[tokio::test]
async fn a_child_is_done_when_its_background_is() {
    within(async {
        let (stage, gate) = gated().await;
        let b = "spawn B in background { call gate; write b.txt x; say B did it }";
        let receipt = stage.agent.followup(format!("spawn A {{ {b}; say B does it }}")).unwrap();
        gate.arrived(1).await;
        child(&stage).when_idle().await;
        assert!(stage.results().is_empty(), "its turn is over, and its task is not");
        gate.open();
        receipt.outcome().await;
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @r"
        [ok] noted
          job-1 (subagent: B) completed:
          B did it
        ");
        assert_eq!(stage.file("b.txt").as_deref(), Some("x"));
        assert!(stage.is_alone() && stage.children().len() == 2);
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-24
#[tokio::test]
async fn what_ended_while_a_child_spoke_is_part_of_its_task() {
    within(async {
        let gate = Gate::new();
        let late = Config { model: Some("late/script".parse().unwrap()), ..Config::new("late", "spawn") };
        let first = |app: &Scope| named::<dyn LlmAdapter>(app, "late", Arc::new(Late(gate.clone())));
        let stage = Stage::with_tools([late], first).await;
        let script = "spawn A via late { spawn B in background { say B did it }; say B does it }";
        let receipt = stage.agent.followup(script).unwrap();
        gate.arrived(1).await;
        stage.jobs().settled(&child(&stage)).await;
        gate.open();
        receipt.outcome().await;
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @r"
        [ok] noted
          job-1 (subagent: B) completed:
          B did it
        ");
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-24
#[tokio::test]
async fn what_a_child_is_told_while_its_turn_is_made_durable_is_part_of_its_task() {
    within(async {
        let (stage, gate) = gated().await;
        let receipt = stage.agent.followup("spawn A { call gate; say one }").unwrap();
        gate.arrived(1).await;
        let (child, ended) = (child(&stage), Arc::new(tokio::sync::Notify::new()));
        let ends = ended.clone();
        let _watching = child.session().observe(0, move |event| {
            if event.get::<TurnEnd>().is_some() {
                ends.notify_one();
            }
        });
        gate.open();
        ended.notified().await;
        assert!(!child.is_idle(), "its disk is slower than we are");
        child.followup("say two").unwrap();
        receipt.outcome().await;
        assert_eq!(stage.shown(&stage.results()[0]), "[ok] two");
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-30
#[tokio::test]
async fn a_child_with_no_result_yet_waits_for_its_background() {
    within(async {
        let (stage, gate) = counting().await;
        let b = "spawn B in background { call gate; write b.txt x; say B did it }";
        let receipt = stage.agent.followup(format!("spawn A via count {{ {b}; say B does it }}")).unwrap();
        gate.arrived(1).await;
        child(&stage).when_idle().await;
        gate.open();
        receipt.outcome().await;
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @r"
        [failed] the child failed: the child finished without handing its result in with `submit_result`. Its last message:
        noted
          job-1 (subagent: B) completed:
          B did it
        ");
        assert_eq!(stage.file("b.txt").as_deref(), Some("x"));
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23
#[tokio::test]
async fn a_child_that_waits_for_its_background_can_be_cancelled() {
    within(async {
        let (stage, gate) = gated().await;
        let b = "spawn B in background { call gate; write b.txt x }";
        let receipt = stage.agent.followup(format!("spawn A {{ {b}; say B does it }}")).unwrap();
        gate.arrived(1).await;
        child(&stage).when_idle().await;
        stage.agent.cancel("the user said so", Inbox::Keep);
        receipt.outcome().await;
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @r"
        [cancelled] the child was cancelled. Its last message:
        B does it
        ");
        gate.open();
        assert!(stage.is_alone() && stage.file("b.txt").is_none());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-30, D-32
#[tokio::test]
async fn a_result_that_is_handed_in_ends_the_background_and_its_denials_count() {
    within(async {
        let (stage, gate) = counting().await;
        let b = "spawn B in background { write ../b.txt x; call gate; hang }";
        let script = format!("spawn A via count {{ {b}; call gate; call submit_result {{\"n\": 3}} }}");
        let receipt = stage.agent.followup(script).unwrap();
        gate.arrived(2).await;
        gate.open();
        receipt.outcome().await;
        insta::assert_snapshot!(stage.shown(&stage.results()[0]), @r#"
        [ok] {"n":3}

        Denied to the child, by the scope that you handed down:
        - write /b.txt (mode workspace-write)
        "#);
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-23, D-32
#[tokio::test]
async fn a_turn_that_fails_ends_the_background_and_its_denials_count() {
    within(async {
        let (stage, gate) = gated().await;
        let b = "spawn B in background { write ../b.txt x; call gate; hang }";
        let receipt = stage.agent.followup(format!("spawn A {{ {b}; call gate; fail protocol }}")).unwrap();
        gate.arrived(2).await;
        gate.open();
        receipt.outcome().await;
        let answer = stage.shown(&stage.results()[0]);
        assert!(answer.starts_with("[failed] the child failed: "), "{answer}");
        assert!(answer.ends_with("- write /b.txt (mode workspace-write)"), "{answer}");
        assert!(stage.is_alone());
        stage.app.close().await.unwrap();
    })
    .await;
}

// D-31
#[tokio::test]
async fn more_jobs_than_are_kept_can_all_be_read() {
    within(async {
        let stage = Stage::new().await;
        let long = "x".repeat(9_000);
        let spawn = format!("spawn a in background {{ say {long} }}");
        let wait = |n| format!("call job_output {{\"job\": \"job-{n}\", \"wait_ms\": 60000}}");
        // One response, so that all of them end before the next step.
        let begin = (1..=12).map(|_| spawn.clone()).collect::<Vec<_>>().join(" & ");
        for _ in 0..4 {
            stage.tell(&begin).await;
            settled(&stage).await;
        }
        assert_eq!(stage.jobs().list(&stage.agent).len(), 48);
        for n in [1, 20, 48] {
            let answer = stage.answer(&wait(n)).await;
            assert!(answer.starts_with(&format!("[ok] job-{n} (subagent: a) completed")), "{answer}");
            assert!(answer.contains(&long));
        }
        let states = stage.jobs().list(&stage.agent);
        assert!(states.iter().all(|job| job.state == JobState::Completed));
        stage.app.close().await.unwrap();
    })
    .await;
}
