//! Clients that drive `tether acp`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::running::{self, Ended, MARK, Running, until};
use super::stage::Stage;
use super::{Row, frames};

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(60);

/// How long what was started may take to be gone.
const GRACE: Duration = Duration::from_secs(10);

/// Asks for a wider sandbox, to write one file.
const ASKS: &str = "write asked.txt hello with workspace-write because \"it is tried\"; say done";

/// acpx: each way to prompt, to stop and to refuse.
pub(crate) fn acpx(stage: &Stage<'_>) -> anyhow::Result<Vec<Row>> {
    Ok(vec![exec(stage)?, sessions(stage)?, cancel(stage)?, deny_all(stage)?, timeout(stage)?])
}

fn exec(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let agent = stage.agent("exec", &["--sandbox", "workspace-write"])?;
    let ended = running::run(acpx_with(stage, &agent).args(["exec", "write exec.txt hello; say done-exec"]), LIMIT)?;
    let against = [
        (ended.code != Some(0), ended.tail()),
        (!ended.out.contains("done-exec"), format!("no answer, {}", ended.tail())),
        (stage.holds("exec.txt").as_deref() != Some("hello"), "the file was not written".into()),
    ];
    Ok(stage.row("`exec`", String::new(), &against, GRACE))
}

fn sessions(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let agent = stage.agent("sessions", &["--sandbox", "workspace-write"])?;
    let mut against = Vec::new();
    let mut tell = |args: &[&str], answer: &str| -> anyhow::Result<()> {
        let ended = running::run(acpx_with(stage, &agent).args(args), LIMIT)?;
        let is_wrong = ended.code != Some(0) || !ended.out.contains(answer);
        against.push((is_wrong, format!("`{}`, {}", args.join(" "), ended.tail())));
        // Its own process stays for a second, to be prompted again; a new one has to find the session.
        let left = until(GRACE, || running::survivors_now(&stage.mark).is_empty().then_some(()));
        against.push((left.is_none(), format!("`{}` left processes", args.join(" "))));
        Ok(())
    };
    tell(&["sessions", "new"], "")?;
    tell(&["prompt", "write sessions.txt one; say done-one"], "done-one")?;
    tell(&["prompt", "read sessions.txt; say done-two"], "done-two")?;
    let frames = stage.frames("sessions");
    let loads = frames.matches("\"session/load\"").count() + frames.matches("\"session/resume\"").count();
    let news = frames.matches("\"session/new\"").count();
    let processes = stage.logs("sessions").len();
    let seen = format!("{processes} processes, {news} new, {loads} loaded");
    against.push((processes < 3 || loads < 2 || news != 1, format!("it was no session over processes: {seen}")));
    Ok(stage.row("`sessions new`, `prompt`, `prompt`", seen, &against, GRACE))
}

fn cancel(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let agent = stage.agent("cancel", &[])?;
    let made = running::run(acpx_with(stage, &agent).args(["sessions", "new"]), LIMIT)?;
    let prompt = Running::start(acpx_with(stage, &agent).args(["prompt", "wait 50000; say done-late"]))?;
    let asked = until(LIMIT, || stage.frames("cancel").contains("\"session/prompt\"").then_some(()));
    let cancelled = running::run(acpx_with(stage, &agent).arg("cancel"), LIMIT)?;
    let ended = prompt.finish(Duration::from_secs(15))?;
    let frames = stage.frames("cancel");
    let against = [
        (made.code != Some(0), format!("`sessions new`, {}", made.tail())),
        (asked.is_none(), "no prompt arrived".into()),
        (cancelled.code != Some(0), format!("`cancel`, {}", cancelled.tail())),
        (ended.late || ended.out.contains("done-late"), format!("the prompt went on, {}", ended.tail())),
        (!frames.contains("\"session/cancel\""), "it sent no cancel".into()),
        (!frames.contains("\"stopReason\":\"cancelled\""), "the prompt was not answered `cancelled`".into()),
    ];
    let seen =
        format!("the prompt ended with {}", ended.code.map_or("a signal".into(), |code| format!("status {code}")));
    Ok(stage.row("`cancel` of a prompt", seen, &against, GRACE))
}

fn deny_all(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let agent = stage.agent("deny", &["--sandbox", "read-only", "--approval", "ask"])?;
    let ended = running::run(acpx_with(stage, &agent).args(["--deny-all", "exec", ASKS]), LIMIT)?;
    let asked = stage.frames("deny").contains("\"session/request_permission\"");
    let against = [
        (ended.code != Some(5), format!("its status is not 5, {}", ended.tail())),
        (!asked, "nothing was asked".into()),
        (stage.holds("asked.txt").is_some(), "the file was written although it was denied".into()),
    ];
    Ok(stage.row("`--deny-all`", "status 5".into(), &against, GRACE))
}

fn timeout(stage: &Stage<'_>) -> anyhow::Result<Row> {
    let agent = stage.agent("timeout", &[])?;
    // A tool does not see the mark in its environment.
    let prompt = format!("bash 'sh -c \"sleep 100; true\" {MARK}={}'", stage.mark);
    let run = Running::start(acpx_with(stage, &agent).args(["--timeout", "4", "exec", &prompt]))?;
    let is_tool = |line: &String| line.starts_with("sh -c sleep");
    let began = until(LIMIT, || running::survivors_now(&stage.mark).iter().any(is_tool).then_some(()));
    let ended = run.finish(LIMIT)?;
    let against = [
        (began.is_none(), "the tool did not begin".into()),
        (ended.code != Some(3), format!("its status is not 3, {}", ended.tail())),
    ];
    Ok(stage.row("`--timeout 4` in a tool", "status 3".into(), &against, GRACE))
}

fn acpx_with(stage: &Stage<'_>, agent: &Path) -> Command {
    let mut command = stage.beside(&stage.kit.at("pkgs/acpx/node_modules/.bin/acpx"));
    command.arg("--agent").arg(agent).arg("--cwd").arg(stage.at("workspace")).args(["--ttl", "1"]);
    command
}

/// Clients that prompt once and say yes to everything.
pub(crate) fn one_shot(stage: &Stage<'_>) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let agent = stage.agent("write", &["--sandbox", "workspace-write"])?;
    let ended = prompt_once(stage, &agent, "write once.txt hello; say done-once")?;
    let mut against = faults(stage, "write", &ended, "done-once");
    against.push((stage.holds("once.txt").as_deref() != Some("hello"), "the file was not written".into()));
    rows.push(stage.row("a prompt that writes", String::new(), &against, GRACE));

    let agent = stage.agent("asks", &["--sandbox", "read-only", "--approval", "ask"])?;
    let ended = prompt_once(stage, &agent, ASKS)?;
    let asked = stage.frames("asks").contains("\"session/request_permission\"");
    let mut against = faults(stage, "asks", &ended, "done");
    against.push((!asked, "nothing was asked".into()));
    against.push((stage.holds("asked.txt").as_deref() != Some("hello"), "the file was not written".into()));
    rows.push(stage.row("a permission, given", String::new(), &against, GRACE));
    Ok(rows)
}

fn prompt_once(stage: &Stage<'_>, agent: &Path, text: &str) -> anyhow::Result<Ended> {
    let kit = stage.kit;
    let mut command = match stage.program {
        "ts-sdk" => {
            let mut node = stage.beside(&kit.at("node/node_modules/node/bin/node"));
            node.arg(kit.at("pkgs/sdk/ts_client.mjs")).args([text, "--"]);
            node
        }
        "py-sdk" => {
            let mut python = stage.beside(&kit.at("venv/bin/python"));
            python.arg(kit.file("py_client.py")).args([text, "--"]);
            python
        }
        _ => {
            let mut yopo = stage.beside(&kit.at("bin/yopo"));
            yopo.arg(text);
            yopo
        }
    };
    running::run(command.arg(agent), LIMIT)
}

/// What speaks against us. The two SDK clients say how the turn stopped, and how we exited; since one of them may say so before
/// it has shown the last update, the frames tell the order.
fn faults(stage: &Stage<'_>, name: &str, ended: &Ended, answer: &str) -> Vec<(bool, String)> {
    let says = |words: &str| ended.out.contains(words);
    let is_sdk = stage.program != "yopo";
    let late = frames::late_updates(&stage.frames(name));
    vec![
        (ended.code != Some(0), ended.tail()),
        (!says(answer), format!("no answer, {}", ended.tail())),
        (is_sdk && !(says("INIT 1") && says("STOP end_turn")), format!("no end of the turn, {}", ended.tail())),
        (late > 0, format!("{late} updates came after the answer")),
        (is_sdk && !says("EXIT 0"), format!("our exit status was not 0, {}", ended.tail())),
    ]
}
