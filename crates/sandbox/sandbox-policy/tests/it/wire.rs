//! What the log says, and how the plugin starts.

use context::{BootError, Plugins, Scope};
use sandbox::Mode::{self, ReadOnly, WorkspaceWrite};
use sandbox_policy::*;
use session::{Payload, Sessions};

use crate::support::*;

#[test]
fn every_source_has_one_name() {
    let names = [
        (ModeCause::Initial, "initial"),
        (ModeCause::Preset, "preset"),
        (ModeCause::Delegation, "delegation"),
        (ModeCause::Ancestor, "ancestor"),
    ];
    for (cause, name) in names {
        let set = ModeSet { mode: WorkspaceWrite, source: Some(cause) };
        let wire = format!(r#"{{"mode":"workspace-write","source":"{name}"}}"#);
        assert_eq!(serde_json::to_string(&set).unwrap(), wire);
        assert_eq!(serde_json::from_str::<ModeSet>(&wire).unwrap(), set);
    }
    assert_eq!(ModeSet::TAG, "sandbox/mode");
    assert_eq!(serde_json::to_string(&ModeSet::by_user(ReadOnly)).unwrap(), r#"{"mode":"read-only"}"#);
}

#[tokio::test]
async fn a_log_with_overrides_can_be_continued_and_they_hold() {
    let stage = Stage::new(Mode::DangerFullAccess).await;
    let session = stage.session();
    set(&session, ReadOnly, Some(ModeCause::Initial));
    let decoded = stage.sessions.vocabulary().decode(text(&session)).unwrap();
    let again = stage.sessions.resume(decoded).unwrap();
    assert_eq!(stage.policy.effective(&again), ReadOnly);
    assert_eq!(again.len(), 1, "a resume writes no policy");
    stage.close().await;
}

/// What decides is looked at when a log is opened, so that damage never reads as "no override".
#[tokio::test]
async fn a_damaged_mode_is_refused_when_the_log_is_opened() {
    let stage = Stage::new(ReadOnly).await;
    let header = serde_json::to_string(&**stage.session().header()).unwrap();
    for data in [r#"{"mode":"full"}"#, r#"{"mode":"read-only","source":"somebody"}"#, "{}", "7"] {
        let log = format!("{header}\n{{\"seq\":0,\"time\":1,\"type\":\"sandbox/mode\",\"data\":{data}}}\n");
        let error = stage.sessions.vocabulary().decode(log).err().expect("it is refused");
        assert!(error.to_string().starts_with("line 2 is damaged: "), "{error}");
    }
    stage.close().await;
}

#[tokio::test]
async fn the_plugin_needs_sessions_and_says_so() {
    let app = Scope::root("app");
    let plugins = || Plugins::new().with(SandboxPolicyPlugin, Config { default: WorkspaceWrite });
    let error = plugins().start(&app).await.unwrap_err();
    assert!(matches!(error, BootError::Stuck(_)));
    assert_eq!(error.to_string(), "the plugin `sandbox-policy` needs session::sessions::Sessions");
    assert!(app.get::<SandboxPolicy>().is_none());
    app.provide(Sessions::new()).unwrap();
    plugins().start(&app).await.unwrap();
    assert_eq!(app.get::<SandboxPolicy>().unwrap().default_mode(), WorkspaceWrite);
    app.close().await.unwrap();
}
