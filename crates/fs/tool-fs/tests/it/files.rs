//! What the tools do, and what a model reads of it.

use sandbox::Mode;
use serde_json::{Value, json};
use tools::code;
use user_approval::Escalation;

use crate::stage::Stage;

fn stage(mode: Mode) -> Stage {
    Stage::new(mode, Escalation::Offered)
}

#[test]
fn each_call_says_what_it_did() {
    let stage = stage(Mode::WorkspaceWrite);
    let table: [(&str, Value, Option<&str>, &str); 18] = [
        ("read", json!({"path": "file.txt"}), None, "one\ntwo\nthree\n"),
        (
            "read",
            json!({"path": "file.txt", "offset": 2, "limit": 1}),
            None,
            "two\n[lines 2 to 2 of 3; go on with offset 3]",
        ),
        ("read", json!({"path": "none"}), Some(code::FAILED), "no such file or directory: /ws/none"),
        ("read", json!({"path": "sub"}), Some(code::FAILED), "is a directory: /ws/sub"),
        ("list", json!({"path": "."}), None, "file.txt\nsub/\n"),
        ("list", json!({"path": "sub"}), None, "[the directory is empty]"),
        ("write", json!({"path": "new/a.txt", "content": "x\n"}), None, "created /ws/new/a.txt (2 bytes)"),
        ("write", json!({"path": "new/a.txt", "content": "yz\n"}), None, "replaced /ws/new/a.txt (3 bytes)"),
        (
            "write",
            json!({"path": "sub/", "content": ""}),
            Some(code::FAILED),
            "invalid path `/ws/sub`: it names a directory, not a file",
        ),
        (
            "edit",
            json!({"path": "file.txt", "old_text": "two", "new_text": "2"}),
            None,
            "edited /ws/file.txt: replaced once",
        ),
        (
            "edit",
            json!({"path": "file.txt", "old_text": "e", "new_text": "E", "replace_all": true}),
            None,
            "edited /ws/file.txt: replaced 3 times",
        ),
        (
            "edit",
            json!({"path": "file.txt", "old_text": "E", "new_text": "e"}),
            Some(code::FAILED),
            "`old_text` occurs 3 times, on lines 1, 3, 3: add lines around it until it is unique, or set `replace_all` (file.txt)",
        ),
        (
            "edit",
            json!({"path": "file.txt", "old_text": "", "new_text": "e"}),
            Some(code::INVALID_ARGUMENTS),
            "`old_text` is empty: give the text to replace, or use `write` for a whole file",
        ),
        (
            "edit",
            json!({"path": "none", "old_text": "a", "new_text": "b"}),
            Some(code::FAILED),
            "no such file or directory: /ws/none",
        ),
        (
            "write",
            json!({"path": "../up", "content": ""}),
            Some(code::SANDBOX_DENIED),
            "sandbox denied: write /up (mode workspace-write)\nonly files below the workspace root may be written",
        ),
        (
            "edit",
            json!({"path": ".git/config", "old_text": "a", "new_text": "b"}),
            Some(code::SANDBOX_DENIED),
            "sandbox denied: edit /ws/.git/config (mode workspace-write)\nthe path is protected: what is written there \
             could run code on this machine later",
        ),
        (
            "read",
            json!({"path": "/proc/self/environ"}),
            Some(code::SANDBOX_DENIED),
            "sandbox denied: read /proc/self/environ (mode workspace-write)\nviews into running processes are not for tools",
        ),
        ("read", json!({"path": "new/a.txt"}), None, "yz\n"),
    ];
    for (tool, arguments, error, want) in table {
        let output = stage.call(tool, arguments.clone());
        assert_eq!((output.error.as_deref(), stage.said(&output).as_str()), (error, want), "{tool} {arguments}");
    }
    assert_eq!(stage.text("ws/file.txt"), "onE\n2\nthrEE\n");
    assert!(!stage.at("up").exists());
}

// D-32
#[test]
fn a_denial_is_structured_for_whoever_reports_it() {
    let stage = stage(Mode::ReadOnly);
    let denied = stage.call("write", json!({"path": "a\nb", "content": "x"}));
    let meta: sandbox::Denial = serde_json::from_str(denied.meta.as_ref().unwrap().get()).unwrap();
    assert_eq!(meta.target, stage.at("ws/a\nb").to_str().unwrap());
    assert_eq!((meta.operation, meta.mode), (sandbox::Operation::Write, Mode::ReadOnly));
    assert_eq!(
        stage.said(&denied),
        "sandbox denied: write /ws/a\\nb (mode read-only)\nthis session may read files but not write them"
    );
}

#[test]
fn a_change_carries_its_difference_for_front_doors() {
    let stage = stage(Mode::WorkspaceWrite);
    let meta = |tool: &str, arguments| -> Value {
        serde_json::from_str(stage.call(tool, arguments).meta.expect("a change has one").get()).unwrap()
    };
    let path = stage.at("ws/file.txt");
    let edited = meta("edit", json!({"path": "file.txt", "old_text": "two", "new_text": "2"}));
    let diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(edited, json!({"path": path, "created": false, "bytes": 12, "diff": diff}));
    let written = meta("write", json!({"path": "file.txt", "content": "one\n2\n"}));
    assert_eq!(written["diff"], "@@ -1,3 +1,2 @@\n one\n 2\n-three\n");
    let created = meta("write", json!({"path": "b", "content": "x"}));
    assert_eq!(created, json!({"path": stage.at("ws/b"), "created": true, "bytes": 1}));
    std::fs::write(stage.at("ws/bytes"), b"\xff").unwrap();
    assert_eq!(meta("write", json!({"path": "bytes", "content": "x"})).get("diff"), None);
    let long = "line\n".repeat(10_000);
    assert_eq!(meta("write", json!({"path": "b", "content": long})).get("diff"), None, "too long to tell");
    let longer = "line\n".repeat(100_000);
    assert_eq!(meta("write", json!({"path": "b", "content": longer})).get("diff"), None, "too long to compare");
}

#[test]
fn without_files_a_tool_says_so() {
    let stage = stage(Mode::ReadOnly);
    stage.run(async {
        let other = context::Scope::root("other");
        context::Plugins::new().with(tool_fs::FsTools, Default::default()).start(&other).await.unwrap();
        for (tool, arguments) in
            [("read", r#"{"path":"a"}"#), ("list", r#"{"path":"a"}"#), ("write", r#"{"path":"a","content":""}"#)]
        {
            let call = tools::Call::new(&other, stage.session.clone(), tool, arguments);
            let output = tools::Runner::new(other.realm()).run(call).await;
            assert_eq!(output.to_text(), "there are no files here: no file system is composed");
        }
        other.close().await.unwrap();
    });
}
