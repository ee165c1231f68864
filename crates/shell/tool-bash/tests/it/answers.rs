//! What a model sees of a command, byte for byte, and what front doors are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sandbox::{Enforcement, Mode};
use scratch::Scratch;
use serde_json::{Value, json};
use tool_bash::Config;
use tools::{OUTPUT_LIMIT, ToolProgress};

use crate::fake::Fake;
use crate::stage::{Stage, in_time, meta};

#[tokio::test]
async fn answers_read_like_this() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let mut all = String::new();
    for arguments in [
        json!({"command": "echo hello; echo world >&2"}),
        json!({"command": "true"}),
        json!({"command": "echo half; exit 3"}),
        json!({"command": "kill -TERM $$"}),
        json!({"command": "pwd; cd /; pwd", "cwd": "sub"}),
        json!({"command": "echo begun; sleep 1000", "timeout_ms": 1000}),
        json!({"command": "echo x > /no-such/place"}),
        json!({"command": "no-such-program-here 2> ws-err || cat ws-err | sed 's/line 1: //'"}),
    ] {
        let output = stage.call("bash", arguments.clone()).await;
        let command = arguments["command"].as_str().unwrap();
        // By name, whatever order this build keeps the fields of objects in.
        let told: BTreeMap<String, Value> = serde_json::from_value(meta(&output)).unwrap();
        let told = serde_json::to_string(&told).unwrap();
        all.push_str(&format!("$ {command}\n{}\n{told}\n\n", stage.said(&output)));
    }
    insta::assert_snapshot!(all);
    stage.close().await;
}

#[tokio::test]
async fn what_holds_it_is_told_to_front_doors() {
    let partial = Enforcement::Partial(vec!["chmod outside".into()]);
    for (mode, enforcement, want) in [
        (Mode::ReadOnly, Enforcement::Full, "full"),
        (Mode::ReadOnly, partial, "partial"),
        (Mode::DangerFullAccess, Enforcement::Full, "nothing"),
    ] {
        let stage = Stage::with(mode, Some(Fake::Holds(enforcement)), Config::default()).await;
        let told = meta(&stage.bash("true").await);
        assert_eq!((&told["held"], &told["mode"]), (&json!(want), &json!(mode.as_str())));
        stage.close().await;
    }
}

/// A weaker sandbox than usual is no secret: whoever reads the result reads that, in the background as well.
#[tokio::test]
async fn what_is_held_in_part_is_said_in_the_text() {
    let partial = Enforcement::Partial(vec!["namespaces: refused".into(), "chmod outside".into()]);
    let note = "\n[the sandbox holds commands only in part here: namespaces: refused; and 1 more]";
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let stage = Stage::with(mode, Some(Fake::Holds(partial.clone())), Config::default()).await;
        for command in ["true", "exit 3", "echo x > /no-such/place"] {
            let text = stage.bash(command).await.to_text();
            assert!(text.ends_with(note), "{text}");
        }
        stage.call("bash", json!({"command": "true", "run_in_background": true})).await;
        let text = stage.call("job_output", json!({"job": "job-1", "wait_ms": 60_000})).await.to_text();
        assert!(text.contains(note.trim()), "{text}");
        stage.close().await;
    }
    let stage = Stage::with(Mode::DangerFullAccess, Some(Fake::Holds(partial)), Config::default()).await;
    assert!(!stage.bash("true").await.to_text().contains("in part"), "nothing was to be held");
    stage.close().await;
}

#[tokio::test]
async fn long_output_is_cut_and_kept_where_the_file_tools_find_it() {
    let stage = Stage::new(Mode::ReadOnly).await;
    let output = stage.bash("seq 1 1000000").await;
    let (text, told) = (output.to_text(), meta(&output));
    assert!(text.starts_with("exit status 0\n1\n2\n") && text.ends_with("\n999999\n1000000"));
    assert!(text.len() < OUTPUT_LIMIT * 3 / 4, "{}", text.len());
    let spilled = told["spilled"].as_str().unwrap();
    assert!(text.contains(spilled));
    let found = stage.call("grep", json!({"pattern": "^777777$", "path": spilled})).await;
    assert!(found.to_text().contains("777777: 777777"), "{}", found.to_text());
    let spilled = std::path::PathBuf::from(spilled);
    assert_eq!(std::fs::metadata(&spilled).unwrap().len(), told["bytes"].as_u64().unwrap());
    stage.close().await;
    assert!(!spilled.exists(), "it goes with the agent");
}

#[tokio::test]
async fn output_is_shown_as_it_comes_and_not_without_end() {
    let stage = Stage::new(Mode::DangerFullAccess).await;
    let shown = Arc::new(Mutex::new(Vec::new()));
    let (sink, fifo) = (shown.clone(), stage.at("ws/go"));
    rustix_fifo(&fifo);
    let go = fifo.clone();
    let listening = stage.app.realm().on(move |progress: &ToolProgress| {
        // The command waits for this: what it said was shown before it ended.
        if sink.lock().unwrap().is_empty() {
            std::fs::write(&go, "go").unwrap();
        }
        sink.lock().unwrap().push(progress.text.to_string());
    });
    let output = stage.bash("echo first; cat go; head -c 200000 /dev/zero | tr '\\0' x").await;
    assert!(output.to_text().starts_with("exit status 0\nfirst\ngoxxx"));
    let shown = shown.lock().unwrap().clone();
    assert_eq!(shown[0], "first\n");
    let all: usize = shown.iter().map(String::len).sum();
    assert!((64 * 1024..66 * 1024).contains(&all), "{all}");
    assert!(shown.last().unwrap().contains("no more is shown"));
    drop(listening);
    stage.close().await;
}

fn rustix_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn a_cancelled_call_ends_its_tree_and_says_so() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let call = stage.prepared("bash", &json!({"command": "echo $$; trap '' TERM; sleep 1000; sleep 1000"}));
    let cancelled = call.cancelled.clone();
    let listening = stage.app.realm().on(move |_: &ToolProgress| cancelled.cancel());
    let output = stage.run(call).await;
    assert_eq!(output.error.as_deref(), Some(tools::code::CANCELLED));
    let text = output.to_text();
    let (first, pid) = text.split_once('\n').unwrap();
    assert_eq!(first, "cancelled: it was killed, with all that it started");
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "{pid}");
    assert_eq!(meta(&output)["cancelled"], true);
    drop(listening);
    stage.close().await;
}

#[tokio::test]
async fn the_agents_end_is_the_commands() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let call = stage.prepared("bash", &json!({"command": "echo $$; sleep 1000; sleep 1000"}));
    let (said, mut pid) = tokio::sync::mpsc::unbounded_channel();
    let listening = stage.app.realm().on(move |progress: &ToolProgress| drop(said.send(progress.text.to_string())));
    let mut runner = tools::Runner::new(stage.agent.ctx().realm());
    let (output, pid) = in_time(async {
        tokio::join!(runner.run(call), async {
            let pid = pid.recv().await.unwrap();
            stage.agent.dispose().await.unwrap();
            assert!(!std::path::Path::new("/proc").join(pid.trim()).exists(), "before the disposal returns");
            pid
        })
    })
    .await;
    assert!(output.is_error() && output.to_text().contains(pid.trim()), "{}", output.to_text());
    drop(listening);
    in_time(stage.app.close()).await.unwrap();
}

#[tokio::test]
async fn nothing_of_the_harness_is_passed_that_is_not_on_the_list() {
    let stage = Stage::new(Mode::ReadOnly).await;
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "it is there to be passed");
    assert_eq!(stage.said(&stage.bash("echo ${CARGO_MANIFEST_DIR-unset}").await), "[ok] exit status 0\nunset");
    stage.close().await;
}

#[tokio::test]
async fn an_agent_has_one_directory_for_all_that_is_temporary() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let scratch = stage.agent.ctx().get::<Scratch>().unwrap();
    let seen = stage.bash("echo $TMPDIR").await.to_text();
    assert_eq!(seen, format!("exit status 0\n{}", scratch.tmp().display()));
    let spilled = meta(&stage.bash("seq 1 100000").await)["spilled"].as_str().unwrap().to_owned();
    assert_eq!(std::path::Path::new(&spilled).parent(), Some(&*scratch.output()));
    let into = format!("echo forged > {spilled}");
    let denied = stage.bash(&into).await;
    assert_eq!(denied.error.as_deref(), Some(tools::code::SANDBOX_DENIED), "no command writes what another said");
    let denied = stage.call("write", json!({"path": spilled, "content": "forged"})).await;
    assert_eq!(denied.error.as_deref(), Some(tools::code::SANDBOX_DENIED), "and no file tool");
    stage.close().await;
    assert!(!scratch.path().exists());
}
