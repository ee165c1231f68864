//! What the log says, and what it must not.

use context::{BootError, Plugins, Scope};
use serde::{Serialize, de::DeserializeOwned};
use session::{Payload, Sessions};
use user_approval::*;

use crate::support::*;

fn check<E: Payload + PartialEq + std::fmt::Debug>(payload: E, tag: &str, wire: &str) {
    assert_eq!(E::TAG, tag);
    assert_eq!(serde_json::to_string(&payload).unwrap(), wire);
    assert_eq!(serde_json::from_str::<E>(wire).unwrap(), payload);
}

fn names<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(all: &[(T, &str)]) {
    for (value, name) in all {
        assert_eq!(serde_json::to_value(value).unwrap(), *name);
        assert_eq!(serde_json::from_value::<T>((*name).into()).unwrap(), *value);
    }
}

#[test]
fn every_name_on_the_wire() {
    names(&[(Policy::Ask, "ask"), (Policy::Never, "never")]);
    names(&[(PolicyCause::Preset, "preset"), (PolicyCause::Delegation, "delegation")]);
    names(&[
        (Outcome::AllowedOnce, "allowed-once"),
        (Outcome::Rejected, "rejected"),
        (Outcome::Cancelled, "cancelled"),
        (Outcome::Unavailable, "unavailable"),
    ]);
    check(PolicySet::by_user(Policy::Ask), "approval/policy", r#"{"policy":"ask"}"#);
    let preset = PolicySet { policy: Policy::Never, source: Some(PolicyCause::Preset) };
    check(preset, "approval/policy", r#"{"policy":"never","source":"preset"}"#);
    let asked = ApprovalAsked {
        request_id: RequestId(7),
        tool: "write".into(),
        call_id: None,
        reason: None,
        justification: None,
    };
    check(asked.clone(), "approval/asked", r#"{"requestId":7,"tool":"write"}"#);
    let asked =
        ApprovalAsked { call_id: Some("c".into()), reason: Some("r".into()), justification: Some("j".into()), ..asked };
    check(asked, "approval/asked", r#"{"requestId":7,"tool":"write","callId":"c","reason":"r","justification":"j"}"#);
    let decided = ApprovalDecided { request_id: RequestId(7), outcome: Outcome::AllowedOnce };
    check(decided, "approval/decided", r#"{"requestId":7,"outcome":"allowed-once"}"#);
}

#[tokio::test]
async fn a_log_with_an_audit_can_be_continued_and_its_policy_holds() {
    let stage = Stage::new().await;
    stage.generous();
    let session = stage.session();
    stage.request(&session).await.unwrap();
    session.append(PolicySet::by_user(Policy::Never)).unwrap();
    end_turn(&session);
    let again = reopened(&session).unwrap();
    assert_eq!(stage.approval.effective(&again), Policy::Never);
    assert_eq!(audit(&again), audit(&session));
    stage.close().await;
}

/// What decides is looked at when a log is opened, so that damage never reads as "no override".
#[tokio::test]
async fn a_damaged_policy_is_refused_when_the_log_is_opened() {
    let stage = Stage::new().await;
    let header = serde_json::to_string(&**stage.session().header()).unwrap();
    for data in [r#"{"policy":"sometimes"}"#, r#"{"policy":"never","source":"somebody"}"#, "{}", "null"] {
        let log = format!("{header}\n{{\"seq\":0,\"time\":1,\"type\":\"approval/policy\",\"data\":{data}}}\n");
        let error = stage.sessions.vocabulary().decode(log).err().expect("it is refused");
        assert!(error.to_string().starts_with("line 2 is damaged: "), "{error}");
    }
    stage.close().await;
}

#[tokio::test]
async fn the_plugin_needs_sessions_and_says_so() {
    let app = Scope::root("app");
    let plugins = || Plugins::new().with(UserApprovalPlugin, Config { default: Policy::Ask });
    let error = plugins().start(&app).await.unwrap_err();
    assert!(matches!(error, BootError::Stuck(_)));
    assert_eq!(error.to_string(), "the plugin `user-approval` needs session::sessions::Sessions");
    assert!(app.get::<Approval>().is_none());
    app.provide(Sessions::new()).unwrap();
    plugins().start(&app).await.unwrap();
    assert!(app.get::<Approval>().is_some());
    app.close().await.unwrap();
}
