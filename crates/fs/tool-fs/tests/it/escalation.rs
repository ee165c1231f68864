//! Asking for more: validated, asked, and only then run.

use std::sync::atomic::Ordering;

use sandbox::{Mode, NotGranted};
use serde_json::{Value, json};
use session::{Delegation, Seed, Session, TurnStart};
use tools::code;
use user_approval::{Answer, ApprovalAsked, ApprovalDecided, Escalation};

use crate::stage::Stage;

fn asking(path: &str, mode: &str) -> Value {
    json!({"path": path, "content": "x", "sandbox_permissions": mode, "justification": "the task says so"})
}

#[test]
fn what_is_allowed_runs_once_under_the_wider_mode() {
    let stage = Stage::new(Mode::ReadOnly, Escalation::Offered);
    let answers = stage.answered(Answer::AllowOnce);
    let output = stage.call("write", asking("a.txt", "workspace-write"));
    assert_eq!(stage.said(&output), "created /ws/a.txt (1 bytes)");
    let output = stage.call("write", asking("../up.txt", "workspace-write"));
    assert_eq!(output.error.as_deref(), Some(code::SANDBOX_DENIED), "the grant goes as far as it says");
    let output = stage.call("write", asking("../up.txt", "danger-full-access"));
    assert_eq!(stage.said(&output), "created /up.txt (1 bytes)");
    let edit = json!({"path": "file.txt", "old_text": "two", "new_text": "2", "sandbox_permissions": "workspace-write",
        "justification": "the task says so"});
    assert_eq!(stage.said(&stage.call("edit", edit)), "edited /ws/file.txt: replaced once");
    let output = stage.call("write", json!({"path": "b.txt", "content": "x"}));
    assert_eq!(output.error.as_deref(), Some(code::SANDBOX_DENIED), "nothing is kept of it");
    assert_eq!(answers.1.load(Ordering::SeqCst), 4);
    assert!(!stage.at("ws/b.txt").exists());
}

#[test]
fn what_is_not_allowed_does_not_run() {
    for (answer, want) in [(Some(Answer::Reject), NotGranted::Rejected), (None, NotGranted::Unavailable)] {
        let stage = Stage::new(Mode::WorkspaceWrite, Escalation::Offered);
        answer.map(|answer| stage.answered(answer));
        let output = stage.call("write", asking("../up.txt", "danger-full-access"));
        assert_eq!((output.error.as_deref(), output.to_text()), (Some(code::ESCALATION), want.to_string()));
        assert!(!stage.at("up.txt").exists());
    }
}

#[test]
fn what_does_not_hold_together_is_not_asked() {
    let stage = Stage::new(Mode::WorkspaceWrite, Escalation::Offered);
    let answers = stage.answered(Answer::AllowOnce);
    let without = |name: &str| {
        let mut arguments = asking("a.txt", "danger-full-access");
        arguments.as_object_mut().unwrap().remove(name);
        arguments
    };
    let senseless = json!({"path": "file.txt", "old_text": "a", "new_text": "a",
        "sandbox_permissions": "danger-full-access", "justification": "why not"});
    let table = [
        ("write", without("justification"), "`sandbox_permissions` needs a `justification`"),
        ("write", without("sandbox_permissions"), "`justification` is only for calls that set `sandbox_permissions`"),
        ("write", asking("a.txt", "workspace-write"), "this call already runs under `workspace-write`"),
        ("write", asking("a.txt", "root"), "`sandbox_permissions`: no sandbox mode named `root`"),
        ("edit", senseless, "`old_text` and `new_text` are the same"),
    ];
    for (tool, arguments, want) in table {
        let output = stage.call(tool, arguments);
        assert_eq!(output.error.as_deref(), Some(code::INVALID_ARGUMENTS));
        assert!(output.to_text().starts_with(want), "{}", output.to_text());
    }
    assert_eq!(answers.1.load(Ordering::SeqCst), 0);
    assert!(!stage.at("ws/a.txt").exists());
}

#[test]
fn what_is_asked_names_the_file_that_a_link_leads_to() {
    let stage = Stage::new(Mode::ReadOnly, Escalation::Offered);
    let answers = stage.answered(Answer::AllowOnce);
    std::os::unix::fs::symlink("../key", stage.at("ws/notes")).unwrap();
    let output = stage.call("write", asking("notes", "danger-full-access"));
    assert_eq!(stage.said(&output), "created /ws/notes (1 bytes)");
    assert_eq!(stage.text("key"), "x");
    let asked = stage.session.snapshot().latest::<ApprovalAsked>().map(|asked| format!("{asked:?}")).unwrap();
    assert!(asked.contains(&format!("write {}", stage.at("key").display())), "{asked}");

    std::os::unix::fs::symlink("turning", stage.at("ws/turning")).unwrap();
    let output = stage.call("write", asking("turning", "danger-full-access"));
    assert_eq!(output.error.as_deref(), Some(code::FAILED));
    assert_eq!(answers.1.load(Ordering::SeqCst), 1, "where it cannot be told, nobody is asked");
}

// D-09
#[test]
fn a_child_that_asks_is_rejected_before_anyone_is() {
    let stage = Stage::new(Mode::WorkspaceWrite, Escalation::Offered);
    let answers = stage.answered(Answer::AllowOnce);
    let child = Session::delegated(Delegation::capture(&stage.session).unwrap(), Seed::Fresh);
    child.append(TurnStart { turn: 1 }).unwrap();
    let output = stage.call_in(&child, "write", asking("../up.txt", "danger-full-access"));
    assert_eq!(output.to_text(), NotGranted::Rejected.to_string());
    assert_eq!(answers.1.load(Ordering::SeqCst), 0);
    assert!(!stage.at("up.txt").exists());
    let log = child.snapshot();
    assert!(log.latest::<ApprovalAsked>().is_some() && log.latest::<ApprovalDecided>().is_some());
}

#[test]
fn where_it_is_not_offered_it_cannot_be_had() {
    let stage = Stage::new(Mode::ReadOnly, Escalation::NotOffered);
    let answers = stage.answered(Answer::AllowOnce);
    let output = stage.call("write", asking("a.txt", "danger-full-access"));
    assert_eq!(output.error.as_deref(), Some(code::INVALID_ARGUMENTS));
    assert_eq!(answers.1.load(Ordering::SeqCst), 0);
    assert!(!stage.at("ws/a.txt").exists());
    let output = stage.call("write", json!({"path": "a.txt", "content": "x"}));
    assert_eq!(output.error.as_deref(), Some(code::SANDBOX_DENIED));
}
