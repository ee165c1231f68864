//! What the log says, and how the plugin starts.

use context::{BootError, Plugins, Scope};
use permission::*;
use sandbox_policy::SandboxPolicy;
use session::{Payload, Sessions, SessionsPlugin};
use user_approval::Approval;

use crate::support::*;

#[test]
fn the_selection_on_the_wire() {
    assert_eq!(PresetChosen::TAG, "permission/preset");
    let chosen = PresetChosen { name: "careful".into() };
    assert_eq!(serde_json::to_string(&chosen).unwrap(), r#"{"name":"careful"}"#);
    assert_eq!(serde_json::from_str::<PresetChosen>(r#"{"name":"careful"}"#).unwrap(), chosen);
}

#[tokio::test]
async fn a_log_with_a_selection_can_be_continued_and_it_holds() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    stage.permission.begin(&session, "danger-full-access").unwrap();
    let again = reopened(&stage.sessions, text(&session, session.len()));
    assert!(again.snapshot().events().iter().all(|event| event.is_known()));
    assert_eq!(stage.current(&again), "danger-full-access");
    assert_eq!(lines(&again), lines(&session), "a resume writes no policy");
    stage.close().await;
}

/// The knobs decide, so that a program without presets can go on with the session.
#[tokio::test]
async fn where_presets_are_unknown_the_knobs_still_hold() {
    let stage = Stage::new((ReadOnly, Ask)).await;
    let session = stage.session();
    stage.permission.begin(&session, "workspace-write").unwrap();
    let plain = Sessions::new();
    plain.learn::<sandbox_policy::ModeSet>().unwrap();
    plain.learn::<user_approval::PolicySet>().unwrap();
    let again = reopened(&plain, text(&session, session.len()));
    assert_eq!(stage.setting(&again), (WorkspaceWrite, Ask));
    assert_eq!(lines(&again), lines(&session), "and nothing is lost");
    stage.close().await;
}

#[tokio::test]
async fn the_plugin_needs_both_knobs_and_says_so() {
    let app = Scope::root("app");
    let plugins = || Plugins::new().with(PermissionPlugin, Config::default());
    let names = |error: &BootError| error.to_string();
    let error = in_time(plugins().start(&app)).await.unwrap_err();
    assert!(matches!(error, BootError::Stuck(_)));
    assert!(names(&error).starts_with("the plugin `permission` needs session::sessions::Sessions"), "{error}");
    in_time(Plugins::new().with(SessionsPlugin, ()).start(&app)).await.unwrap();
    let error = in_time(plugins().start(&app)).await.unwrap_err();
    assert!(names(&error).contains("SandboxPolicy"), "{error}");
    app.provide(SandboxPolicy::new(ReadOnly)).unwrap();
    let error = in_time(plugins().start(&app)).await.unwrap_err();
    assert!(names(&error).contains("Approval"), "{error}");
    assert!(app.get::<Permission>().is_none());
    app.provide(Approval::new(Ask)).unwrap();
    in_time(plugins().start(&app)).await.unwrap();
    assert_eq!(app.get::<Permission>().unwrap().presets(), &Presets::default());
    in_time(app.close()).await.unwrap();
}
