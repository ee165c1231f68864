//! `tether config show`: every value and where it came from, and no key.

use serde_json::{Value, json};

use crate::run::process::Ran;
use crate::run::world::World;

const PROJECTS: &str = "area/root/.tether/config.toml";

fn configured() -> World {
    let world = World::new();
    world.config(
        r#"model = "anthropic/claude-sonnet"

[sandbox]
default = "workspace-write"
protected = ["secrets/"]

[permission.presets.careful]
sandbox = "read-only"
approval = "ask"

[budget]
max_children = 64
seconds = 3600

[[subagent]]
tool = "reviewer"
provider = "spawn"
persona = "You review code."
tools = { deny = ["write", "edit"] }
"#,
    );
    world.write(
        PROJECTS,
        "[sandbox]\ndefault = 'read-only'\n[budget]\nmax_children = 2\nseconds = 7200\n[tools]\ndeny = ['write']",
    );
    world.write("config/tether/.env", "OPENAI_API_KEY=sk-not-to-be-seen\nOPENAI_BASE_URL=http://sk-not-to-be-seen@x\n");
    world
}

fn shown(world: &World, args: &[&str]) -> String {
    let mut command = world.command(&[&["config", "show"], args].concat());
    command.env("TETHER_BUDGET_TOKENS", "2000000").env("ANTHROPIC_API_KEY", "sk-not-to-be-seen");
    let ran = Ran::of(command).ended(0);
    assert_eq!(ran.stderr, "");
    assert!(!ran.stdout.contains("sk-"), "{}", ran.stdout);
    assert!(!world.path("home").exists(), "nothing was started");
    ran.stdout.replace(world.base().to_str().unwrap(), "")
}

#[test]
fn for_people() {
    // The columns are as wide as what stands in them, and places are not the same twice.
    let told = shown(&configured(), &["--max-depth", "1"]);
    let lines = told.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    root "/area/root" default
    home "/home" $TETHER_HOME
    config "/config/tether" $XDG_CONFIG_HOME
    model "anthropic/claude-sonnet" /config/tether/config.toml:1
    sandbox.default "read-only" project /area/root/.tether/config.toml:2, narrowed from "workspace-write" (/config/tether/config.toml:4)
    sandbox.initial_override true default
    sandbox.tmp "private" default
    sandbox.network "denied" default
    sandbox.protected "secrets/" /config/tether/config.toml:5
    approval.default "ask" default
    permission.presets.read-only {"sandbox":"read-only","approval":"ask"} default
    permission.presets.workspace-write {"sandbox":"workspace-write","approval":"ask"} default
    permission.presets.danger-full-access {"sandbox":"danger-full-access","approval":"never"} default
    permission.presets.careful {"sandbox":"read-only","approval":"ask"} /config/tether/config.toml:7
    budget.max_depth 1 --max-depth
    budget.max_children 2 project /area/root/.tether/config.toml:4, narrowed from 64 (/config/tether/config.toml:12)
    budget.max_children_total unset default
    budget.tokens 2000000 $TETHER_BUDGET_TOKENS
    budget.seconds 3600 /config/tether/config.toml:13
    budget.seconds 7200 not taken from project /area/root/.tether/config.toml:5: a project can narrow, never widen
    subagent.reviewer {"provider":"spawn","persona":"You review code.","tools":{"deny":["edit","write"… /config/tether/config.toml:15
    tools.deny "write" project /area/root/.tether/config.toml:7
    offline.script unset default
    DEEPSEEK_API_KEY not set
    DEEPSEEK_BASE_URL not set
    OPENAI_API_KEY set /config/tether/.env
    OPENAI_BASE_URL set /config/tether/.env
    ANTHROPIC_API_KEY set environment
    ANTHROPIC_BASE_URL not set
    GEMINI_API_KEY not set
    GOOGLE_API_KEY not set
    GEMINI_BASE_URL not set
    OLLAMA_HOST not set
    "#);
}

#[test]
fn for_programs() {
    let told = shown(&configured(), &["--max-depth", "1", "--json"]);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let line = |key: &str| lines.iter().filter(|line| line["key"] == key).collect::<Vec<_>>();
    let user = |line: u32| json!({"layer": "user", "file": "/config/tether/config.toml", "line": line});
    let project = |line: u32| json!({"layer": "project", "file": "/area/root/.tether/config.toml", "line": line});
    assert_eq!(
        line("sandbox.default"),
        [&json!({
            "key": "sandbox.default", "value": "read-only", "from": project(2),
            "narrowedFrom": {"value": "workspace-write", "from": user(4)}
        })]
    );
    assert_eq!(
        line("budget.seconds"),
        [
            &json!({"key": "budget.seconds", "value": 3600, "from": user(13)}),
            &json!({"key": "budget.seconds", "notTaken": 7200, "from": project(5)})
        ]
    );
    let depth = json!({"key": "budget.max_depth", "value": 1, "from": {"layer": "flag", "flag": "--max-depth"}});
    assert_eq!(line("budget.max_depth"), [&depth]);
    let variable = json!({"layer": "environment", "variable": "TETHER_BUDGET_TOKENS"});
    assert_eq!(line("budget.tokens"), [&json!({"key": "budget.tokens", "value": 2_000_000, "from": variable})]);
    let unset = json!({"key": "budget.max_children_total", "value": null, "from": {"layer": "default"}});
    assert_eq!(line("budget.max_children_total"), [&unset]);
    let reviewer = json!({"provider": "spawn", "persona": "You review code.", "tools": {"deny": ["edit", "write"]}});
    assert_eq!((&line("subagent.reviewer")[0]["value"], line("subagent.subagent").len()), (&reviewer, 0));
    let variables: Vec<_> = lines.iter().filter(|line| line["variable"] != Value::Null).collect();
    let of = |name: &str| variables.iter().find(|line| line["variable"] == name).copied();
    let file = json!({"layer": "env-file", "file": "/config/tether/.env"});
    assert_eq!(of("OPENAI_API_KEY"), Some(&json!({"variable": "OPENAI_API_KEY", "set": true, "from": file})));
    assert_eq!(of("GEMINI_API_KEY"), Some(&json!({"variable": "GEMINI_API_KEY", "set": false, "from": null})));
    assert_eq!(of("HTTPS_PROXY"), None, "nobody set it");
}

#[test]
fn the_model_that_nobody_named() {
    let model = |variables: &[(&str, &str)]| {
        let world = World::new();
        let mut command = world.command(&["config", "show", "--json"]);
        command.envs(variables.iter().copied());
        let ran = Ran::of(command).ended(0);
        let line = ran.json().into_iter().find(|line| line["key"] == "model").unwrap();
        (line["value"].as_str().unwrap().to_owned(), line["because"].as_str().unwrap().to_owned())
    };
    assert_eq!(model(&[]), ("offline/script".into(), "no provider has a key".into()));
    let (model, why) = model(&[("ANTHROPIC_API_KEY", "k")]);
    assert!(model.starts_with("anthropic/") && why == "the first provider with a key", "{model} {why}");
}

#[test]
fn everything_that_is_wrong_is_told_in_a_line_each() {
    let world = World::new();
    world.config("modle = 'a/b'\n[budget]\ntokens = 0");
    world.write(PROJECTS, "model = 'a/b'");
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let mut command = world.command(args);
        command.env("TETHER_SANDBOX_DEFAULT", "wide");
        let ran = Ran::of(command).ended(2);
        assert_eq!(ran.stdout, "");
        let told = ran.stderr.replace(world.base().to_str().unwrap(), "");
        let places: Vec<_> = told.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        let (user, project) = ("/config/tether/config.toml", "/area/root/.tether/config.toml");
        assert_eq!(
            places,
            [&format!("{user}:1"), &format!("{user}:3"), &format!("{project}:1"), "$TETHER_SANDBOX_DEFAULT"],
            "{told}"
        );
    }
}

#[test]
fn a_project_moves_no_cursor() {
    let world = World::new();
    world.write(PROJECTS, "[sandbox]\nprotected = ['\u{202e}a', \"\\u001b[2J\"]\n[tools]\ndeny = [\"\\u009b2J\"]");
    let ran = world.tether(&["config", "show"]).ended(0);
    assert!(!ran.stdout.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{:?}", ran.stdout);
    // The name is of nothing, which only a start finds out.
    let ran = world.tether(&["run", "say hi"]).ended(0);
    let note = ran.complaint("config.toml:4: no tool named");
    assert!(note.ends_with("so nothing is denied by that") && !note.contains(char::is_control), "{note:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::new();
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    drop(reader);
    let mut command = world.command(&["config", "show"]);
    let mut child = command.stdout(writer).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn the_documented_configuration_is_sound() {
    let page = include_str!("../../../../../README.md");
    let (_, behind) = page.split_once("`~/.config/tether/config.toml`:").expect("it is documented");
    let example = behind.split("```").nth(1).and_then(|block| block.strip_prefix("toml")).expect("with an example");
    let world = World::new();
    world.config(example);
    world.tether(&["run", "--model", "offline/script", "spawn A via reviewer { say hi }"]).ended(0);
    assert_eq!(world.logs().len(), 2, "the reviewer is a child");
}
