//! Commands that go on behind their call.

use std::path::Path;

use jobs::{JobBegan, Jobs};
use sandbox::Mode;
use sandbox_policy::Denied;
use serde_json::json;
use session::{ToolErrorCode, ToolReturned};
use subagent::denials_in;
use tool_bash::Config;
use tools::ToolOutput;
use user_approval::Answer;

use crate::fake::{Fake, Looks, Says};
use crate::stage::{Stage, in_time, meta};

async fn behind(stage: &Stage, command: &str) -> ToolOutput {
    stage.call("bash", json!({"command": command, "run_in_background": true})).await
}

async fn read(stage: &Stage, job: &str) -> String {
    let output = stage.call("job_output", json!({"job": job, "wait_ms": 60_000})).await;
    stage.said(&output).replace(|c: char| c.is_ascii_digit() && c != '1', "_")
}

/// What the agent is told.
fn notices(stage: &Stage) -> String {
    let log = stage.agent.session().snapshot();
    let accepted = log.events().iter().filter_map(|event| event.get::<session::InboxAccepted>());
    accepted.map(|accepted| format!("{accepted:?}")).collect()
}

#[tokio::test]
async fn one_that_ends_is_told_with_what_it_said() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let started = behind(&stage, "echo hello; exit 1").await;
    assert_eq!(stage.said(&started), "[ok] job-1: the command runs in the background. You are told when it ends.");
    assert_eq!(meta(&started), json!({"job": "job-1"}));
    let jobs = stage.app.get::<Jobs>().unwrap();
    in_time(jobs.settled(&stage.agent)).await;
    let told = notices(&stage);
    assert!(told.contains("job-1 (bash: echo hello; exit 1) failed") && told.contains("hello"), "{told}");
    let text = read(&stage, "job-1").await;
    assert!(text.ends_with("failed after _ s:\nhello\nexit status 1"), "{text}");
    let denied = behind(&stage, "echo x > /no-such/place").await;
    assert!(!denied.is_error());
    let text = read(&stage, "job-2").await;
    assert!(text.ends_with("sandbox denied: write /no-such/place (mode workspace-write)\nexit status 1"), "{text}");
    stage.close().await;
}

// D-32: a denial behind a call counts as one of a call does, and once.
#[tokio::test]
async fn one_that_is_denied_something_says_so_as_a_call_does() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let asked = json!({"job": "job-1", "wait_ms": 60_000});
    behind(&stage, "echo x > /no-such/place").await;
    let first = stage.call("job_output", asked.clone()).await;
    let again = stage.call("job_output", asked).await;
    let now = stage.bash("echo x > /no-such/place").await;
    // It is in the log already.
    assert!(first.error == now.error && first.meta.is_none() && now.meta.is_some());
    let line = |output: &ToolOutput| output.to_text().lines().next().unwrap().to_owned();
    assert_eq!(line(&first), line(&now));
    assert!(first.to_text().ends_with(&again.to_text()) && again.meta.is_none() && !again.is_error());
    for answer in [first, again, now] {
        stage.agent.session().append(returned(answer)).unwrap();
    }
    let denials = denials_in(&stage.agent.session().snapshot(), 0);
    assert_eq!((denials.total, denials.list.len()), (2, 2));
    stage.close().await;
}

// D-32: whether or not anybody asks what came of it.
#[tokio::test]
async fn a_denial_that_only_a_notice_tells_counts() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    behind(&stage, "echo x > /no-such/place").await;
    behind(&stage, "exit 1").await;
    in_time(stage.app.get::<Jobs>().unwrap().settled(&stage.agent)).await;
    assert!(notices(&stage).contains("sandbox denied: write /no-such/place"), "{}", notices(&stage));
    let log = stage.agent.session().snapshot();
    let denials = denials_in(&log, 0);
    assert_eq!((denials.total, &*denials.list[0].target), (1, "/no-such/place"));
    let event = log.latest_event::<Denied>().unwrap();
    let line = serde_json::to_value(&event.get::<Denied>().unwrap().0).unwrap();
    assert_eq!(line, json!({"operation": "write", "target": "/no-such/place", "mode": "workspace-write"}));
    stage.close().await;
}

/// As a log has it.
fn returned(ToolOutput { content, error, meta, .. }: ToolOutput) -> ToolReturned {
    let is_error = error.is_some();
    let error = error.map(|code| ToolErrorCode { code });
    ToolReturned { turn: 1, step: 1, call_id: "call".into(), content, is_error, error, meta }
}

/// Starts one that says its id and goes on.
async fn sleeper(stage: &Stage, job: &str) -> String {
    behind(stage, "echo $$ > pid.part; echo asleep; mv pid.part pid; sleep 1000; sleep 1000").await;
    let pid = stage.at("ws/pid");
    let there = async {
        while !pid.exists() {
            stage.call("job_output", json!({"job": job, "wait_ms": 10})).await;
        }
    };
    in_time(there).await;
    std::fs::read_to_string(pid).unwrap().trim().to_owned()
}

fn is_gone(pid: &str) -> bool {
    !Path::new("/proc").join(pid).exists()
}

#[tokio::test]
async fn one_that_runs_is_listed_read_and_killed() {
    let stage = Stage::new(Mode::DangerFullAccess).await;
    let pid = sleeper(&stage, "job-1").await;
    assert!(!is_gone(&pid));
    let listed = stage.call("job_list", json!({})).await.to_text();
    assert!(listed.starts_with("job-1 (bash: echo $$ > pid.part;") && listed.contains("is running"), "{listed}");
    let killed = stage.call("job_kill", json!({"job": "job-1"})).await.to_text();
    assert!(killed.contains("was killed"), "{killed}");
    assert!(is_gone(&pid), "before the answer");
    let text = stage.call("job_output", json!({"job": "job-1"})).await.to_text();
    assert!(text.ends_with("asleep\ncancelled: it was killed, with all that it started"), "{text}");
    assert_eq!(notices(&stage), "", "who kills a job needs no notice");
    stage.close().await;
}

#[tokio::test]
async fn one_ends_with_its_owner_and_not_with_its_turn() {
    let stage = Stage::new(Mode::DangerFullAccess).await;
    let pid = sleeper(&stage, "job-1").await;
    let call = stage.prepared("bash", &json!({"command": "true"}));
    call.cancelled.cancel();
    assert!(stage.run(call).await.is_error());
    assert!(!is_gone(&pid));
    in_time(stage.agent.dispose()).await.unwrap();
    assert!(is_gone(&pid), "before the disposal returns");
    in_time(stage.app.close()).await.unwrap();
}

#[tokio::test]
async fn a_timeout_holds_in_the_background_only_where_it_is_given() {
    let stage = Stage::new(Mode::DangerFullAccess).await;
    let arguments = json!({"command": "echo begun; sleep 1000", "run_in_background": true, "timeout_ms": 1000});
    stage.call("bash", arguments).await;
    let text = read(&stage, "job-1").await;
    assert!(text.contains("failed after") && text.contains("timed out after 1___ ms"), "{text}");
    stage.close().await;
}

#[tokio::test]
async fn a_grant_is_for_all_of_it_and_its_title_says_so() {
    let stage = Stage::new(Mode::ReadOnly).await;
    stage.answered(Looks::new(&stage.at("out"), Says::This(Answer::AllowOnce)));
    let out = stage.at("out");
    let arguments = json!({"command": format!("echo x > {}", out.display()), "run_in_background": true,
        "sandbox_permissions": "danger-full-access", "justification": "the task says so"});
    let started = stage.call("bash", arguments).await;
    let want = "[ok] job-1: the command runs in the background under danger-full-access. You are told when it ends.";
    assert_eq!(stage.said(&started), want);
    let text = read(&stage, "job-1").await;
    assert!(text.contains("(bash: under danger-full-access: echo x > /out) completed"), "{text}");
    assert!(out.exists());
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_granted_is_no_job() {
    let stage = Stage::new(Mode::ReadOnly).await;
    stage.answered(Looks::new(&stage.at("out"), Says::This(Answer::Reject)));
    let arguments = json!({"command": "touch ran", "run_in_background": true,
        "sandbox_permissions": "danger-full-access", "justification": "the task says so"});
    assert_eq!(stage.call("bash", arguments).await.error.as_deref(), Some(tools::code::ESCALATION));
    assert_eq!(stage.call("job_list", json!({})).await.to_text(), "no jobs");
    assert!(stage.agent.session().latest::<JobBegan>().is_none() && !stage.at("ws/ran").exists());
    stage.close().await;
}

#[tokio::test]
async fn one_that_nothing_holds_fails_as_a_job() {
    let stage = Stage::with(Mode::ReadOnly, Some(Fake::Refuses), Config::default()).await;
    behind(&stage, "touch ran").await;
    let text = read(&stage, "job-1").await;
    assert!(text.contains("failed") && text.contains("the moon is full"), "{text}");
    assert!(!stage.at("ws/ran").exists());
    stage.close().await;
}
