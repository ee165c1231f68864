//! From an escalation request to a grant.

use context::Scope;
use sandbox::{EscalationRequest, Mode, NotGranted};
use session::{Session, Sessions};
use tools::Call;
use user_approval::*;

use crate::support::*;

fn call(stage: &Stage, session: &Session) -> Call {
    let mut call = Call::new(&stage.app, session.clone(), "write", "{}");
    call.call_id = "call_7".into();
    call
}

fn request() -> EscalationRequest {
    let request = EscalationRequest::from_args(Some("danger-full-access"), Some("to block\nads"), Mode::ReadOnly);
    request.unwrap().expect("both were given")
}

async fn escalated(call: &Call) -> Result<Mode, NotGranted> {
    in_time(escalate(call, "write /etc/hosts", &request())).await.map(|grant| grant.mode())
}

#[tokio::test]
async fn what_a_person_decides_on_names_the_operation_the_mode_and_the_reason() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    assert_eq!(escalated(&call(&stage, &session)).await, Ok(Mode::DangerFullAccess));
    let asked = session.latest::<ApprovalAsked>().unwrap();
    assert_eq!((&*asked.tool, asked.call_id.as_deref()), ("write", Some("call_7")));
    assert_eq!(asked.reason.as_deref(), Some("write /etc/hosts under danger-full-access"));
    assert_eq!(asked.justification.as_deref(), Some("to block ads"), "apart: it is the model's wording");
    stage.close().await;
}

#[tokio::test]
async fn every_other_outcome_is_no_grant_and_says_which() {
    let stage = Stage::new().await;
    let session = stage.session();
    let call = call(&stage, &session);
    assert_eq!(escalated(&call).await, Err(NotGranted::Unavailable));
    stage.answerer("strict", async |_| Some(Answer::Reject));
    assert_eq!(escalated(&call).await, Err(NotGranted::Rejected));
    call.cancelled.cancel();
    assert_eq!(escalated(&call).await, Err(NotGranted::Cancelled), "the call's own turn");
    let outcomes: Vec<String> = audit(&session).into_iter().filter(|line| line.contains("decided")).collect();
    assert_eq!(outcomes, ["2: decided 1 Unavailable", "4: decided 3 Rejected", "6: decided 5 Cancelled"]);
    stage.close().await;
}

#[tokio::test]
async fn an_ask_that_could_not_be_made_is_no_grant() {
    let stage = Stage::new().await;
    stage.generous();
    let idle = stage.sessions.create("/home/me/project");
    assert_eq!(escalated(&call(&stage, &idle)).await, Err(NotGranted::Unavailable));
    let closed = stage.session();
    closed.close();
    assert_eq!(escalated(&call(&stage, &closed)).await, Err(NotGranted::Unavailable));
    assert_eq!(stage.consulted.take(), [""; 0]);
    stage.close().await;
}

#[tokio::test]
async fn without_the_service_nobody_can_be_asked() {
    let app = Scope::root("app");
    let session = Sessions::new().create("/home/me/project");
    session.append(session::TurnStart { turn: 1 }).unwrap();
    let call = Call::new(&app, session.clone(), "write", "{}");
    assert_eq!(escalated(&call).await, Err(NotGranted::Unavailable));
    assert_eq!(session.len(), 1, "and nothing is written");
    app.close().await.unwrap();
}

// D-09
#[tokio::test]
async fn a_childs_escalation_is_rejected() {
    let stage = Stage::new().await;
    stage.generous();
    let child = child(&stage.session(), session::Seed::Fresh);
    child.append(session::TurnStart { turn: 1 }).unwrap();
    assert_eq!(escalated(&call(&stage, &child)).await, Err(NotGranted::Rejected));
    assert_eq!(stage.consulted.take(), [""; 0]);
    stage.close().await;
}
