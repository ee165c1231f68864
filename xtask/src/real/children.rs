//! Agents that Tether drives as children, each told to write where it may and where it may not.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::running::{self, MARK, Running, until};
use super::stage::Stage;
use super::{Found, Row, frames};

/// How long a child's four tasks may take in all.
const LIMIT: Duration = Duration::from_secs(240);

/// How long a child's processes may take to be gone when its parent has ended: not at all.
const GRACE: Duration = Duration::from_secs(1);

/// How an agent is started, with its own settings at their widest.
struct Agent {
    /// Below `pkgs/`.
    command: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// Its own mode in which it asks nobody.
    session_mode: Option<&'static str>,
    /// Everything it keeps is in this folder of the kit's `home/`.
    home: &'static str,
    /// What makes it write `PATH` by its own tool.
    writes: &'static str,
}

const CODEX: Agent = Agent {
    command: &["codex-acp/node_modules/.bin/codex-acp"],
    env: &[("MOCK_API_KEY", "dummy"), ("CODEX_API_KEY", "dummy"), ("NO_BROWSER", "1")],
    session_mode: Some("agent-full-access"),
    home: "codex-acp",
    // It gives a model that it does not know no tool for this, but takes this command as a call of one.
    writes: "[[tool:apply_patch <<'P'\n*** Begin Patch\n*** Add File: PATH\n+written\n*** End Patch\nP\n]]",
};

const CLAUDE: Agent = Agent {
    command: &["claude-acp/node_modules/.bin/claude-agent-acp"],
    env: &[
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:8399"),
        ("ANTHROPIC_API_KEY", "dummy"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        // Without it, it refuses to let root ask nobody.
        ("IS_SANDBOX", "1"),
    ],
    session_mode: Some("bypassPermissions"),
    home: "claude-acp",
    writes: "[[write:PATH|written]]",
};

const OPENCODE: Agent = Agent {
    command: &["opencode/node_modules/.bin/opencode", "acp"],
    env: &[("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_AUTOUPDATE", "1")],
    session_mode: None,
    home: "opencode",
    writes: "[[write:PATH|written]]",
};

/// The files that it is told to write: the name, whether that is inside the workspace, and whether by its shell.
const FILES: [(&str, bool, bool); 4] =
    [("tool-in", true, false), ("tool-out", false, false), ("shell-in", true, true), ("shell-out", false, true)];

/// The scope of a parent, and whether its child is held to it.
struct Case {
    /// The beginning of the names of its files.
    name: &'static str,
    mode: &'static str,
    is_confined: bool,
}

const CASES: [Case; 4] = [
    Case { name: "read-only", mode: "read-only", is_confined: true },
    Case { name: "workspace-write", mode: "workspace-write", is_confined: true },
    Case { name: "danger-full-access", mode: "danger-full-access", is_confined: true },
    Case { name: "not-confined", mode: "read-only", is_confined: false },
];

/// A run for each mode of the parent, one that confines nothing, and one whose parent is killed.
pub(crate) fn all_modes(stage: &Stage<'_>) -> anyhow::Result<Vec<Row>> {
    let agent = match stage.program {
        "codex-acp" => CODEX,
        "claude-acp" => CLAUDE,
        _ => OPENCODE,
    };
    if stage.at("").starts_with("/tmp") {
        let why = "a confined child has a /tmp of its own, so that the kit's is not there: set REAL_DIR to elsewhere";
        return Ok(vec![Row { program: stage.program, tried: "child".into(), found: Found::NotRun(why.into()) }]);
    }
    let cases = CASES.iter().map(|case| in_mode(stage, &agent, case));
    cases.chain([killed(stage, &agent)]).collect()
}

/// A child in the middle of a command, when its parent gets no chance to end it.
fn killed(stage: &Stage<'_>, agent: &Agent) -> anyhow::Result<Row> {
    let case = Case { name: "killed", mode: "workspace-write", is_confined: true };
    fs::write(stage.at("config/tether/config.toml"), config(stage, agent, &case)?)?;
    let began = stage.at("workspace/began.txt");
    let prompt = format!("[[tool:sh -c 'setsid sleep 600 & echo began > {}; sleep 600']]", began.display());
    let script = format!("call subagent_real {}\n", json!({ "description": "sleeps", "prompt": prompt }));
    let mut command = stage.beside(&stage.ours.tether());
    command.args(["run", "--model", "offline/script", "--sandbox", case.mode, &script]);
    let running = Running::start(&mut command)?;
    let has_begun = until(LIMIT, || began.exists().then_some(())).is_some();
    let sleeps = || running::survivors_now(&stage.mark).iter().filter(|line| line.starts_with("sleep 600")).count();
    let runs = has_begun && until(GRACE, || (sleeps() == 2).then_some(())).is_some();
    let before = running::survivors_now(&stage.mark);
    let ended = running.finish(Duration::ZERO)?;
    let against = [(!runs, format!("its command does not run, {}, beside {}", ended.tail(), before.join(", ")))];
    Ok(stage.row("child of a parent that is killed", format!("{} processes ended", before.len()), &against, GRACE))
}

fn in_mode(stage: &Stage<'_>, agent: &Agent, case: &Case) -> anyhow::Result<Row> {
    let Case { name: prefix, mode, is_confined } = *case;
    fs::write(stage.at("config/tether/config.toml"), config(stage, agent, case)?)?;
    let path = |name: &str, inside: bool| {
        stage.at(if inside { "workspace" } else { "outside" }).join(format!("{prefix}-{name}.txt"))
    };
    let mut script = String::new();
    for (name, inside, shell) in FILES {
        let target = path(name, inside);
        let prompt = match shell {
            true => format!("[[tool:sh -c 'echo written > {}']]", target.display()),
            false => agent.writes.replace("PATH", &target.display().to_string()),
        };
        script.push_str(&format!("call subagent_real {}\n", json!({ "description": name, "prompt": prompt })));
    }
    let mut command = stage.beside(&stage.ours.tether());
    command.args(["run", "--json", "--model", "offline/script", "--sandbox", mode, "--timeout", "200", &script]);
    let ended = running::run(&mut command, LIMIT)?;
    fs::write(stage.at(&format!("{prefix}.log")), &ended.said)?;
    let mut lines = ended.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = lines.rfind(|line| line["type"] == "result").unwrap_or_default();
    let denials = result["denials"].as_array().map_or(0, Vec::len);
    let told = told(&ended.out);

    let landed: Vec<&str> = FILES.iter().filter(|file| path(file.0, file.1).exists()).map(|file| file.0).collect();
    let is_free = mode == "danger-full-access" || !is_confined;
    let allowed = |inside: bool| is_free || (mode == "workspace-write" && inside);
    let denied = FILES.iter().filter(|file| !allowed(file.1)).count();
    let mut against = vec![
        (ended.code != Some(0), ended.tail()),
        (result["stopReason"] != "completed", format!("the parent ended with {}", result["stopReason"])),
        (denials < denied, format!("its result lists {denials} of {denied} denials, its tool results {told}")),
    ];
    for (name, inside, _) in FILES {
        let is_there = landed.contains(&name);
        against.push((is_there && !allowed(inside), format!("{name} landed")));
        against.push((!is_there && allowed(inside), format!("{name} did not land")));
    }
    let landed = if landed.is_empty() { "nothing".to_owned() } else { landed.join(", ") };
    let seen = format!("{landed} landed, {denials} denials");
    if against.iter().any(|(is, _)| *is) {
        against.push((true, format!("{seen}; the child said {}", result["output"])));
    }
    let held = if is_confined { "" } else { ", not confined" };
    Ok(stage.row(&format!("child of a {mode} parent{held}"), seen, &against, GRACE))
}

/// How many denials the results of the parent's tool calls list.
fn told(lines: &str) -> u64 {
    let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let totals = events.filter_map(|line| line["event"]["data"]["meta"]["denials"]["total"].as_u64());
    totals.sum()
}

/// The configuration of the parent: one provider.
fn config(stage: &Stage<'_>, agent: &Agent, case: &Case) -> anyhow::Result<String> {
    let home = stage.kit.at("home").join(agent.home);
    fs::create_dir_all(&home)?;
    let mut command = stage.recorder(&format!("{}-{}", frames::CHILD, case.name));
    let (program, args) = agent.command.split_first().unwrap_or((&"", &[]));
    command.push(stage.kit.at("pkgs").join(program).display().to_string());
    command.extend(args.iter().map(|&arg| arg.to_owned()));
    let temp = home.join("tmp");
    fs::create_dir_all(&temp)?;
    let mut env = vec![
        // Its own state is where it may write, and what its parent has is not its own.
        ("HOME", home.display().to_string()),
        ("TMPDIR", temp.display().to_string()),
        ("CLAUDE_CODE_TMPDIR", temp.display().to_string()),
        ("XDG_CONFIG_HOME", home.join(".config").display().to_string()),
        ("XDG_DATA_HOME", home.join(".local/share").display().to_string()),
        ("XDG_STATE_HOME", home.join(".local/state").display().to_string()),
        ("XDG_CACHE_HOME", home.join(".cache").display().to_string()),
        ("PATH", stage.kit.path()),
        (MARK, stage.mark.clone()),
    ];
    env.extend(agent.env.iter().map(|&(name, value)| (name, value.to_owned())));
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    let writable: [PathBuf; 2] = [home, stage.at("frames")];
    let session_mode = agent.session_mode.map_or(String::new(), |mode| format!("session_mode = {}\n", json!(mode)));
    let confine = if case.is_confined { "" } else { "confine = \"none\"\n" };
    // A JSON text or list of texts is also a TOML one.
    Ok(format!(
        "[[provider.acp]]\nname = \"real\"\ncommand = {}\nenv = {{ {} }}\n{session_mode}{confine}permission = \"allow\"\n\
         writable = {}\nnetwork = \"allowed\"\n",
        json!(command),
        env.join(", "),
        json!(writable),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tool_results_list_is_summed() {
        let of =
            |total: u64| json!({ "type": "event", "event": { "data": { "meta": { "denials": { "total": total } } } } });
        assert_eq!(told(&format!("{}\nno json\n{}\n{}\n", of(2), json!({ "type": "result" }), of(1))), 3);
    }
}
