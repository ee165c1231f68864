//! A tool that asks for more, in the pipeline that every call goes through: validated, asked, run.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use llm::ToolSchema;
use sandbox::{EscalationRequest, Mode, NotGranted};
use serde_json::{Value, json};
use session::Session;
use tokio::time::{Instant, sleep};
use tools::{Call, Runner, Tool, ToolOutput, code};
use user_approval::*;

use crate::support::*;

/// Writes down under which mode it ran.
struct Probe {
    schema: ToolSchema,
    session_mode: Mode,
    trace: Trace,
}

#[async_trait]
impl Tool for Probe {
    fn schema(&self) -> &ToolSchema {
        &self.schema
    }

    async fn call(&self, call: &Call) -> ToolOutput {
        let args: Value = serde_json::from_str(&call.arguments).unwrap();
        let arg = |name: &str| args[name].as_str();
        let request = EscalationRequest::from_args(arg("mode"), arg("why"), self.session_mode);
        let request = match request {
            Ok(request) => request,
            Err(error) => return ToolOutput::error(code::INVALID_ARGUMENTS, error.to_string()),
        };
        let grant = match request {
            None => None,
            Some(request) => match escalate(call, "probe /etc", &request).await {
                Ok(grant) => Some(grant),
                Err(refused) => return ToolOutput::error(code::ESCALATION, refused.to_string()),
            },
        };
        let mode = sandbox::effective(self.session_mode, grant.as_ref());
        self.trace.note(format!("ran under {mode}"));
        ToolOutput::text("done")
    }
}

fn probe(stage: &Stage, session_mode: Mode) -> Runner {
    let schema = ToolSchema { name: "probe".into(), description: "Probes.".into(), input_schema: Arc::new(json!({})) };
    let probe = Probe { schema, session_mode, trace: stage.consulted.clone() };
    stage.app.register::<dyn Tool>("probe", Arc::new(probe)).unwrap();
    Runner::new(stage.app.realm())
}

fn call(stage: &Stage, session: &Session, arguments: Value) -> Call {
    Call::new(&stage.app, session.clone(), "probe", arguments.to_string())
}

fn asking() -> Value {
    json!({"mode": "danger-full-access", "why": "to see"})
}

#[tokio::test]
async fn it_is_asked_before_it_runs_and_runs_once() {
    let stage = Stage::new().await;
    stage.generous();
    let (session, mut tool) = (stage.session(), probe(&stage, Mode::ReadOnly));
    let asked = ["generous owns?", "generous asked", "generous owns?", "ran under danger-full-access"];
    for _ in 0..2 {
        in_time(tool.run(call(&stage, &session, asking()))).await;
        assert_eq!(stage.consulted.take(), asked, "every call is asked for");
        in_time(tool.run(call(&stage, &session, json!({})))).await;
        assert_eq!(stage.consulted.take(), ["ran under read-only"], "what was allowed was that call");
    }
    in_time(tool.run(call(&stage, &session, json!({"mode": "workspace-write", "why": "to see"})))).await;
    assert_eq!(stage.consulted.take().last().unwrap(), "ran under workspace-write", "no wider than what was asked");
    stage.close().await;
}

#[tokio::test]
async fn what_does_not_hold_together_is_neither_asked_nor_run() {
    let table = [
        (json!({"mode": "danger-full-access"}), Mode::ReadOnly),
        (json!({"why": "to see"}), Mode::ReadOnly),
        (json!({"mode": "everything", "why": "to see"}), Mode::ReadOnly),
        (json!({"mode": "read-only", "why": "to see"}), Mode::ReadOnly),
        (json!({"mode": "workspace-write", "why": "to see"}), Mode::WorkspaceWrite),
        (json!({"mode": "workspace-write", "why": "to see"}), Mode::DangerFullAccess),
        (json!({"mode": "danger-full-access", "why": "to see"}), Mode::DangerFullAccess),
    ];
    for (arguments, session_mode) in table {
        let stage = Stage::new().await;
        stage.generous();
        let (session, mut tool) = (stage.session(), probe(&stage, session_mode));
        let output = in_time(tool.run(call(&stage, &session, arguments.clone()))).await;
        assert_eq!(output.error.as_deref(), Some(code::INVALID_ARGUMENTS), "{arguments} {session_mode}");
        assert_eq!(stage.consulted.take(), [""; 0], "{arguments} {session_mode}");
        assert_eq!(session.len(), 1, "nothing is written");
        stage.close().await;
    }
}

#[tokio::test]
async fn what_is_not_allowed_does_not_run_and_says_which_of_three_it_was() {
    let cases = [
        (Some(Answer::Reject), false, NotGranted::Rejected),
        (None, false, NotGranted::Unavailable),
        (Some(Answer::AllowOnce), true, NotGranted::Cancelled),
    ];
    let mut texts = vec!["done".to_owned()];
    for (answer, is_cancelled, want) in cases {
        let stage = Stage::new().await;
        let (session, mut tool) = (stage.session(), probe(&stage, Mode::ReadOnly));
        let call = call(&stage, &session, asking());
        let cancels = call.cancelled.clone();
        stage.answerer("person", move |_| {
            if is_cancelled {
                cancels.cancel();
            }
            async move {
                tokio::task::yield_now().await;
                answer
            }
        });
        let output = in_time(tool.run(call)).await;
        assert_eq!((output.error.as_deref(), output.to_text()), (Some(code::ESCALATION), want.to_string()));
        assert!(!stage.consulted.take().iter().any(|what| what.starts_with("ran")), "{want}");
        texts.push(output.to_text());
        stage.close().await;
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 4, "four outcomes, four texts");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_answered_within_a_second_whoever_hangs() {
    let stage = Stage::new().await;
    stage.answerer("absent", async |_| None);
    stage.answerer("hangs", async |_| std::future::pending().await);
    let (session, mut tool) = (stage.session(), probe(&stage, Mode::ReadOnly));
    let call = call(&stage, &session, asking());
    let cancels = call.cancelled.clone();
    let person = async move {
        sleep(Duration::from_secs(5)).await;
        cancels.cancel();
    };
    stage.app.spawn("person", context::Stop::Join, person).unwrap();
    let began = Instant::now();
    let output = in_time(tool.run(call)).await;
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(output.to_text(), NotGranted::Cancelled.to_string());
    assert_eq!(audit(&session), ["1: asked 1", "2: decided 1 Cancelled"]);
    stage.close().await;
}
