//! Asking for more: validated, asked, and only then run; the same for files and commands.

use std::fs::{read_to_string, write};

use sandbox::{Denial, Mode, NotGranted};
use serde_json::{Value, json};
use session::{Delegation, Seed, Session, TurnStart};
use tool_bash::Config;
use tools::code;
use user_approval::{Answer, ApprovalAsked, Escalation};

use crate::fake::{Looks, Says};
use crate::stage::{Stage, meta};

/// A call that makes `old` in a file `new`.
fn changing(tool: &str, path: &str, wider: Option<Mode>) -> Value {
    let mut arguments = match tool {
        "write" => json!({"path": path, "content": "new\n"}),
        "edit" => json!({"path": path, "old_text": "old", "new_text": "new"}),
        "bash" => json!({"command": format!("echo new > {path}")}),
        other => unreachable!("{other}"),
    };
    if let Some(wider) = wider {
        arguments["sandbox_permissions"] = wider.as_str().into();
        arguments["justification"] = "the task says so".into();
    }
    arguments
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Allowed,
    Rejected,
    Cancelled,
    Unavailable,
}

#[tokio::test]
async fn the_matrix() {
    let modes = [
        (Mode::ReadOnly, Mode::WorkspaceWrite, "ws/file"),
        (Mode::ReadOnly, Mode::DangerFullAccess, "out"),
        (Mode::WorkspaceWrite, Mode::DangerFullAccess, "out"),
    ];
    let outcomes = [Outcome::Allowed, Outcome::Rejected, Outcome::Cancelled, Outcome::Unavailable];
    let mut rows = 0;
    for (mode, wider, file) in modes {
        let stage = Stage::new(mode).await;
        let path = stage.at(file);
        for outcome in outcomes {
            for tool in ["write", "edit", "bash"] {
                check(&stage, tool, &path, mode, wider, outcome).await;
                rows += 1;
            }
        }
        stage.close().await;
    }
    assert_eq!(rows, 36);
}

async fn check(stage: &Stage, tool: &str, path: &std::path::Path, mode: Mode, wider: Mode, outcome: Outcome) {
    let row = format!("{tool} under {mode}, asking for {wider}: {outcome:?}");
    write(path, "old\n").unwrap();
    let name = path.to_str().unwrap();
    let call = stage.prepared(tool, &changing(tool, name, Some(wider)));
    let says = match outcome {
        Outcome::Allowed => Says::This(Answer::AllowOnce),
        Outcome::Rejected => Says::This(Answer::Reject),
        Outcome::Cancelled => Says::Cancels(call.cancelled.clone()),
        Outcome::Unavailable => Says::Nothing,
    };
    let looks = Looks::new(path, says);
    let approval = stage.app.get::<user_approval::Approval>().unwrap();
    let answering = approval.answer_with(looks.clone());
    let output = stage.run(call).await;

    let seen = looks.seen.lock().unwrap().clone();
    let [(held, asked)] = &*seen else { panic!("{row}: asked {seen:?}") };
    assert_eq!(held, "old\n", "{row}: nothing runs before the answer");
    let operation = match tool {
        "bash" => format!("run in {}: echo new > {name} under {wider}", stage.at("ws").display()),
        _ => format!("{tool} {name} under {wider}"),
    };
    assert_eq!(*asked, operation, "{row}");
    let refused = match outcome {
        Outcome::Allowed => None,
        Outcome::Rejected => Some(NotGranted::Rejected),
        Outcome::Cancelled => Some(NotGranted::Cancelled),
        Outcome::Unavailable => Some(NotGranted::Unavailable),
    };
    let after = read_to_string(path).unwrap();
    match refused {
        None => {
            assert_eq!((output.error.as_deref(), &*after), (None, "new\n"), "{row}: {}", output.to_text());
        }
        Some(why) => {
            assert_eq!((output.error.as_deref(), output.to_text()), (Some(code::ESCALATION), why.to_string()), "{row}");
            assert_eq!(after, "old\n", "{row}");
        }
    }

    write(path, "old\n").unwrap();
    let again = stage.call(tool, changing(tool, name, None)).await;
    let denial: Denial = serde_json::from_value(meta(&again)).unwrap();
    assert_eq!((again.error.as_deref(), denial.mode), (Some(code::SANDBOX_DENIED), mode), "{row}: for one call alone");
    assert_eq!(again.to_text().lines().next(), Some(&*denial.to_string()), "{row}");
    assert_eq!(read_to_string(path).unwrap(), "old\n", "{row}");
    assert_eq!(looks.seen.lock().unwrap().len(), 1, "{row}: nobody was asked again");
    drop(answering);
}

#[tokio::test]
async fn a_grant_keeps_its_root_and_goes_as_far_as_it_says() {
    let stage = Stage::new(Mode::ReadOnly).await;
    stage.answered(Looks::new(&stage.at("out"), Says::This(Answer::AllowOnce)));
    let out = stage.at("out");
    let denied = stage.call("bash", changing("bash", out.to_str().unwrap(), Some(Mode::WorkspaceWrite))).await;
    assert_eq!(
        stage.said(&denied),
        "[sandbox-denied] sandbox denied: write /out (mode workspace-write)\nexit status 1\ncannot write /out"
    );
    let pwd = json!({"command": "pwd", "sandbox_permissions": "danger-full-access", "justification": "to see"});
    assert_eq!(stage.said(&stage.call("bash", pwd).await), "[ok] exit status 0\n/ws");
    assert!(!out.exists());
    stage.close().await;
}

#[tokio::test]
async fn what_does_not_hold_together_is_not_asked() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let looks = Looks::new(&stage.at("out"), Says::This(Answer::AllowOnce));
    stage.answered(looks.clone());
    let asks = |extra: Value| {
        let mut arguments = json!({"command": "touch ran", "sandbox_permissions": "danger-full-access",
            "justification": "the task says so"});
        for (name, value) in extra.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        arguments
    };
    let table = [
        (asks(json!({"justification": null})), "`sandbox_permissions` needs a `justification`"),
        (asks(json!({"sandbox_permissions": "workspace-write"})), "this call already runs under `workspace-write`"),
        (asks(json!({"sandbox_permissions": "root"})), "`sandbox_permissions`: no sandbox mode named `root`"),
        (asks(json!({"command": "vim ran"})), "`vim` waits for a person"),
        (asks(json!({"command": " "})), "`command` is empty"),
        (asks(json!({"cwd": "none"})), "`cwd`: no such directory"),
        (asks(json!({"timeout_ms": 0})), "`timeout_ms` is 0"),
        (asks(json!({"run_in_background": true, "command": "top"})), "`top` waits for a person"),
    ];
    for (arguments, want) in table {
        let output = stage.call("bash", arguments).await;
        assert_eq!(output.error.as_deref(), Some(code::INVALID_ARGUMENTS), "{}", output.to_text());
        assert!(output.to_text().starts_with(want), "{}", output.to_text());
    }
    assert_eq!(looks.seen.lock().unwrap().len(), 0);
    assert!(!stage.at("ws/ran").exists());
    stage.close().await;
}

#[tokio::test]
async fn what_is_asked_is_one_line_and_names_where_a_link_leads() {
    let stage = Stage::new(Mode::ReadOnly).await;
    let looks = Looks::new(&stage.at("out"), Says::This(Answer::Reject));
    stage.answered(looks.clone());
    std::os::unix::fs::symlink(stage.at("home"), stage.at("ws/build")).unwrap();
    let arguments = json!({"command": "rm -r\n./*\u{202e}", "cwd": "build", "run_in_background": true,
        "sandbox_permissions": "danger-full-access", "justification": "to clean"});
    stage.call("bash", arguments).await;
    let asked = looks.seen.lock().unwrap()[0].1.replace(stage.top.to_str().unwrap(), "");
    assert_eq!(asked, r"run in the background of /home: rm -r\n./*\u{202e} under danger-full-access");
    stage.close().await;
}

/// Turns the link that it was asked about, and allows.
struct Turns(std::path::PathBuf, std::path::PathBuf);

#[async_trait::async_trait]
impl user_approval::Answerer for Turns {
    fn owns(&self, _: session::SessionId) -> bool {
        true
    }

    async fn answer(&self, _: &user_approval::Question) -> Option<Answer> {
        std::fs::remove_file(&self.0).unwrap();
        std::os::unix::fs::symlink(&self.1, &self.0).unwrap();
        Some(Answer::AllowOnce)
    }
}

#[tokio::test]
async fn a_directory_that_is_exchanged_meanwhile_was_not_asked_about() {
    let stage = Stage::new(Mode::ReadOnly).await;
    let link = stage.at("ws/build");
    std::os::unix::fs::symlink(stage.at("ws/sub"), &link).unwrap();
    let approval = stage.app.get::<user_approval::Approval>().unwrap();
    let turns = std::sync::Arc::new(Turns(link, stage.at("home")));
    stage.app.own(approval.answer_with(turns)).unwrap();
    let arguments = json!({"command": "touch ran", "cwd": "build", "sandbox_permissions": "danger-full-access",
        "justification": "to build"});
    let output = stage.call("bash", arguments).await;
    assert_eq!(stage.said(&output), "[failed] `cwd` leads elsewhere since it was asked about, and nothing was run");
    assert!(!stage.at("home/ran").exists() && !stage.at("ws/sub/ran").exists());
    stage.close().await;
}

// D-09
#[tokio::test]
async fn a_child_that_asks_is_rejected_before_anyone_is() {
    let stage = Stage::new(Mode::WorkspaceWrite).await;
    let looks = Looks::new(&stage.at("out"), Says::This(Answer::AllowOnce));
    stage.answered(looks.clone());
    let child = Session::delegated(Delegation::capture(stage.agent.session()).unwrap(), Seed::Fresh);
    child.append(TurnStart { turn: 1 }).unwrap();
    let mut call =
        stage.prepared("bash", &changing("bash", stage.at("out").to_str().unwrap(), Some(Mode::DangerFullAccess)));
    call.session = child.clone();
    let output = stage.run(call).await;
    assert_eq!(output.to_text(), NotGranted::Rejected.to_string());
    assert!(looks.seen.lock().unwrap().is_empty() && !stage.at("out").exists());
    assert!(child.snapshot().latest::<ApprovalAsked>().is_some());
    stage.close().await;
}

#[tokio::test]
async fn where_it_is_not_offered_it_cannot_be_had() {
    let config = Config { escalation: Escalation::NotOffered, ..Config::default() };
    let provider = crate::fake::Fake::Holds(sandbox::Enforcement::Full);
    let stage = Stage::with(Mode::ReadOnly, Some(provider), config).await;
    let looks = Looks::new(&stage.at("out"), Says::This(Answer::AllowOnce));
    stage.answered(looks.clone());
    let output = stage.call("bash", changing("bash", "file", Some(Mode::WorkspaceWrite))).await;
    assert_eq!(output.error.as_deref(), Some(code::INVALID_ARGUMENTS));
    assert!(looks.seen.lock().unwrap().is_empty() && !stage.at("ws/file").exists());
    stage.close().await;
}
