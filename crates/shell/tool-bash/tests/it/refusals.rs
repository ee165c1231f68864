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
        json!({"command": "touch ran", "timeout_ms": "5000"}),
        json!({"command": "touch ran", "timeout_ms": -1}),
        json!({"command": "touch ran", "timeout_ms": 1.5}),
        json!({"command": "touch ran", "timeout_ms": 1e300}),
        json!({"command": "touch ran", "timeout_ms": u64::MAX}),
        json!({"command": "touch ran", "timeout_ms": [1, {"a": "x".repeat(1000)}]}),
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
async fn without_jobs_there_is_no_background() {
    let stage = Stage::without_jobs(Mode::WorkspaceWrite).await;
    let asked = |in_background: bool| json!({"command": "echo > ran", "run_in_background": in_background});
    let refused = stage.said(&stage.call("bash", asked(true)).await);
    let want = "[invalid-arguments] `run_in_background` is no argument here, since there are no jobs: leave it out";
    assert_eq!(refused, want);
    assert!(!stage.at("ws/ran").exists());
    assert!(!stage.call("bash", asked(false)).await.is_error() && stage.at("ws/ran").exists());
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
