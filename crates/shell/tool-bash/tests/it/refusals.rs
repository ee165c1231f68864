//! What is not run at all, and says so.

use sandbox::{Enforcement, Mode};
use serde_json::json;
use tool_bash::Config;

use crate::fake::Fake;
use crate::stage::{Stage, meta};

#[tokio::test]
async fn refusals_read_like_this() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let home = stage.at("home");
    let mut all = String::new();
    for arguments in [
        json!({"command": ""}),
        json!({"command": "touch ran\u{0}"}),
        json!({"command": "touch ran; vim ran"}),
        json!({"command": "touch ran; git add -p"}),
        json!({"command": "touch ran", "cwd": "nowhere"}),
        json!({"command": "touch ran", "cwd": home}),
        json!({"command": "touch ran", "timeout_ms": 0}),
        json!({"command": "touch ran", "timeout_ms": 600_001}),
        json!({"command": "touch ran", "timeout": 1}),
    ] {
        let output = stage.call("bash", arguments).await;
        all.push_str(&format!("{}\n", stage.said(&output)));
    }
    insta::assert_snapshot!(all);
    assert!(!stage.at("ws/ran").exists() && !stage.at("home/ran").exists());
    let denied = stage.call("bash", json!({"command": "touch ran", "cwd": home})).await;
    assert_eq!(meta(&denied), json!({"operation": "execute", "target": home, "mode": "workspace-write"}));
    let fits = stage.call("bash", json!({"command": "touch ran", "timeout_ms": 600_000})).await;
    assert!(!fits.is_error() && stage.at("ws/ran").exists());
    stage.close().await;
}

#[tokio::test]
async fn a_mode_that_nothing_holds_runs_nothing() {
    let table = [
        (
            None,
            "[failed] commands cannot be confined here, so none is run under a confining mode: the mode is read-only, and there is no sandbox in this program",
        ),
        (
            Some(Fake::Holds(Enforcement::None("no namespaces".into()))),
            "[failed] commands cannot be confined here, so none is run under a confining mode: no namespaces",
        ),
        (
            Some(Fake::Refuses),
            "[failed] commands cannot be confined here, so none is run under a confining mode: the moon is full",
        ),
    ];
    for (provider, want) in table {
        let stage = Stage::with(Mode::ReadOnly, provider, Config::default()).await;
        assert_eq!(stage.said(&stage.bash("touch ran").await), want);
        assert!(!stage.at("ws/ran").exists());
        stage.close().await;
    }
    let stage = Stage::with(Mode::DangerFullAccess, None, Config::default()).await;
    assert!(!stage.bash("touch ran").await.is_error() && stage.at("ws/ran").exists());
    stage.close().await;
}

#[tokio::test]
async fn a_sandbox_that_does_not_start_is_neither_a_failure_nor_a_denial() {
    let stage = Stage::with(Mode::ReadOnly, Some(Fake::FailsToStart), Config::default()).await;
    let output = stage.bash("touch ran").await;
    let said = stage.said(&output);
    assert!(said.starts_with("[failed] the sandbox could not be started, so the command was not run: "), "{said}");
    assert!(output.meta.is_none() && !stage.at("ws/ran").exists());
    stage.close().await;
}

#[tokio::test]
async fn an_agent_without_a_shell_is_told() {
    let stage = Stage::new(Mode::ReadOnly).await;
    let mut call = stage.prepared("bash", &json!({"command": "true"}));
    call.ctx = context::Ctx::clone(&stage.app);
    assert_eq!(stage.said(&stage.run(call).await), "[failed] there are no commands here: no shell is composed");
    stage.close().await;
}
