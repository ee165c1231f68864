use app_boot::{Entry, Flags, Origin};
use sandbox::Mode;
use serde_json::json;
use user_approval::Policy;

use crate::world::World;

/// A key that a project may narrow.
struct Scalar {
    key: &'static str,
    default: &'static str,
    /// What a user, a project that narrows and one that widens say: in a file, and as it is shown.
    users: (&'static str, &'static str),
    narrower: (&'static str, &'static str),
    wider: (&'static str, &'static str),
    variable: (&'static str, &'static str, &'static str),
}

const SCALARS: [Scalar; 9] = [
    Scalar {
        key: "sandbox.default",
        default: "\"read-only\"",
        users: ("'workspace-write'", "\"workspace-write\""),
        narrower: ("'read-only'", "\"read-only\""),
        wider: ("'danger-full-access'", "\"danger-full-access\""),
        variable: ("TETHER_SANDBOX_DEFAULT", "danger-full-access", "\"danger-full-access\""),
    },
    Scalar {
        key: "approval.default",
        default: "\"ask\"",
        users: ("'ask'", "\"ask\""),
        narrower: ("'never'", "\"never\""),
        wider: ("'ask'", "\"ask\""),
        variable: ("TETHER_APPROVAL_DEFAULT", "never", "\"never\""),
    },
    Scalar {
        key: "sandbox.tmp",
        default: "\"private\"",
        users: ("'shared'", "\"shared\""),
        narrower: ("'private'", "\"private\""),
        wider: ("'shared'", "\"shared\""),
        variable: ("TETHER_SANDBOX_TMP", "shared", "\"shared\""),
    },
    Scalar {
        key: "sandbox.network",
        default: "\"denied\"",
        users: ("'allowed'", "\"allowed\""),
        narrower: ("'denied'", "\"denied\""),
        wider: ("'allowed'", "\"allowed\""),
        variable: ("TETHER_SANDBOX_NETWORK", "allowed", "\"allowed\""),
    },
    number("budget.max_depth", "3", "TETHER_BUDGET_MAX_DEPTH"),
    number("budget.max_children", "null", "TETHER_BUDGET_MAX_CHILDREN"),
    number("budget.max_children_total", "null", "TETHER_BUDGET_MAX_CHILDREN_TOTAL"),
    number("budget.tokens", "null", "TETHER_BUDGET_TOKENS"),
    number("budget.seconds", "null", "TETHER_BUDGET_SECONDS"),
];

const fn number(key: &'static str, default: &'static str, variable: &'static str) -> Scalar {
    let (users, narrower, wider) = (("6", "6"), ("2", "2"), ("7_000", "7000"));
    Scalar { key, default, users, narrower, wider, variable: (variable, "9", "9") }
}

fn file(key: &str, value: &str) -> String {
    match key.split_once('.') {
        Some((section, key)) => format!("\n[{section}]\n{key} = {value}\n"),
        None => format!("{key} = {value}\n"),
    }
}

const USERS: &str = "config/tether/config.toml:3";
const PROJECTS: &str = "project project/.tether/config.toml:3";

#[test]
fn every_layer_goes_over_the_one_before() {
    for Scalar { key, default, users, narrower, variable: (name, set, shown), .. } in SCALARS {
        let told = |world: World| world.told(key);
        let user = file(key, users.0);
        assert_eq!(told(World::new()), format!("{default} default"), "{key}");
        assert_eq!(told(World::of(&user, "")), format!("{} {USERS}", users.1));
        let narrowed = format!("{} {PROJECTS} < {} {USERS}", narrower.1, users.1);
        let project = file(key, narrower.0);
        assert_eq!(told(World::of(&user, &project)), narrowed);
        assert_eq!(told(World::of(&user, &project).set(name, set)), format!("{shown} ${name}"));
        assert_eq!(told(World::of(&user, &project).set(name, "")), narrowed, "an empty variable is none");
    }
}

#[test]
fn a_project_never_widens() {
    for Scalar { key, users, narrower, wider, .. } in SCALARS {
        // What would be narrower than the default counts for nothing above a narrower user.
        let has_two_values = users.0 == wider.0;
        let (user, shown) = if has_two_values { narrower } else { users };
        let world = World::of(&file(key, user), &file(key, wider.0));
        assert_eq!(world.told(key), format!("{shown} {USERS}"));
        let not_taken = world.load().unwrap().not_taken;
        let not_taken: Vec<_> = not_taken.iter().map(|not| (not.key, not.value.to_string(), not.place.line)).collect();
        assert_eq!(not_taken, [(key, wider.1.to_owned(), 3)]);
        // Saying the same is neither.
        let world = World::of(&file(key, user), &file(key, user));
        assert_eq!(world.told(key), format!("{shown} {USERS}"));
        assert!(world.load().unwrap().not_taken.is_empty());
    }
}

#[test]
fn what_only_a_user_may_say() {
    let cases = [
        ("model", "model = 'openai/a'"),
        ("sandbox.initial_override", "[sandbox]\ninitial_override = false"),
        ("permission", "[permission.presets.mine]\nsandbox = 'read-only'\napproval = 'never'"),
        ("subagent", "[[subagent]]\ntool = 'x'\nprovider = 'spawn'"),
        ("offline", "[offline]\nscript = 'x'"),
    ];
    for (key, text) in cases {
        assert!(World::of(text, "").load().is_ok(), "{text}");
        let wrong = World::of("", text).load().unwrap_err();
        let line = if key == "sandbox.initial_override" { 2 } else { 1 };
        let said = "is for the user's own configuration: a project can narrow, never widen";
        assert_eq!(wrong, [format!("project/.tether/config.toml:{line}: `{key}` {said}")]);
    }
}

#[test]
fn keys_that_a_project_has_no_say_in() {
    let world = World::of("model = 'openai/a'\n[offline]\nscript = 'x'\n[sandbox]\ninitial_override = false", "");
    assert_eq!(world.told("model"), "\"openai/a\" config/tether/config.toml:1");
    assert_eq!(world.told("offline.script"), "\"x\" config/tether/config.toml:3");
    assert_eq!(world.told("sandbox.initial_override"), "false config/tether/config.toml:5");
    let world = world
        .set("TETHER_MODEL", "ollama/b")
        .set("TETHER_OFFLINE_SCRIPT", "y")
        .set("TETHER_SANDBOX_INITIAL_OVERRIDE", "true");
    assert_eq!(world.told("model"), "\"ollama/b\" $TETHER_MODEL");
    assert_eq!(world.told("offline.script"), "\"y\" $TETHER_OFFLINE_SCRIPT");
    assert_eq!(world.told("sandbox.initial_override"), "true $TETHER_SANDBOX_INITIAL_OVERRIDE");
}

#[test]
fn flags_go_over_everything() {
    let flags =
        Flags { model: Some("gemini/c".parse().unwrap()), max_depth: Some(8), max_children: Some(0), tokens: Some(5) };
    let world =
        World::of("", "[budget]\nmax_depth = 1").set("TETHER_MODEL", "ollama/b").set("TETHER_BUDGET_TOKENS", "9");
    let world = world.flags(flags);
    assert_eq!(world.told("model"), "\"gemini/c\" --model");
    assert_eq!(world.told("budget.max_depth"), "8 --max-depth");
    assert_eq!(world.told("budget.max_children"), "0 --max-children");
    assert_eq!(world.told("budget.tokens"), "5 --budget-tokens");
    let limits = world.load().unwrap().limits();
    assert_eq!((limits.max_depth, limits.max_children, limits.tokens, limits.time), (8, Some(0), Some(5), None));
}

#[test]
fn protected_paths_add_up() {
    let world = World::of("[sandbox]\nprotected = ['a', 'b/']", "[sandbox]\nprotected = [\n  'c',\n]");
    let told: Vec<_> = world.load().unwrap().entries();
    let told: Vec<_> = told.iter().filter(|entry| entry.key == "sandbox.protected").map(|e| world.line(e)).collect();
    let users = "config/tether/config.toml:2";
    assert_eq!(
        told,
        [format!("\"a\" {users}"), format!("\"b/\" {users}"), "\"c\" project project/.tether/config.toml:3".to_owned()]
    );
}

#[test]
fn presets_stand_behind_the_built_in_ones_in_the_order_of_the_file() {
    let user = "
[permission.presets.wild]
sandbox = 'danger-full-access'
approval = 'ask'
[permission.presets.read-only]
sandbox = 'read-only'
approval = 'never'
[permission.presets]
careful = { sandbox = 'read-only', approval = 'ask' }
";
    let config = World::of(user, "").load().unwrap();
    let presets = config.presets();
    assert_eq!(
        presets.names().collect::<Vec<_>>(),
        ["read-only", "workspace-write", "danger-full-access", "wild", "careful"]
    );
    let replaced = presets.get("read-only").unwrap();
    assert_eq!((replaced.sandbox, replaced.approval), (Mode::ReadOnly, Policy::Never));
    let entries = config.entries();
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key).unwrap();
    let careful = entry("permission.presets.careful");
    assert_eq!(careful.value, json!({"sandbox": "read-only", "approval": "ask"}));
    assert!(matches!(&careful.from, Origin::User(place) if place.line == 9), "{careful:?}");
    assert_eq!(entry("permission.presets.workspace-write").from, Origin::Default);
}

#[test]
fn rows_replace_the_default_tools() {
    let rows = |user: &str| {
        let entries = World::of(user, "").load().unwrap().entries();
        let rows = entries.into_iter().filter(|entry| entry.key.starts_with("subagent."));
        rows.map(|Entry { key, value, from, .. }| (key, value, from)).collect::<Vec<_>>()
    };
    let default = |tool: &str, provider| (format!("subagent.{tool}"), json!({"provider": provider}), Origin::Default);
    assert_eq!(rows(""), [default("subagent", "spawn"), default("subagent_fork", "fork")]);
    assert_eq!(rows("subagent = []"), [], "no delegation at all");
    let user = r#"
[[subagent]]
tool = "reviewer"
provider = "spawn"
mode = "one-shot"
model = "anthropic/claude-sonnet"
persona = "You review {{label}}."
tools = { deny = ["write", "edit"] }
max_depth = 2
output_schema = { type = "object", properties = { ok = { type = "boolean" }, n = { minimum = 0.5, maximum = 9 } } }

[[subagent]]
tool = "look"
provider = "fork"
"#;
    let rows = rows(user);
    let lines: Vec<_> =
        rows.iter().map(|(_, _, from)| from.to_string().rsplit(':').next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["2", "12"]);
    assert_eq!((&*rows[0].0, &*rows[1].0), ("subagent.reviewer", "subagent.look"));
    let schema = json!({
        "type": "object",
        "properties": { "ok": { "type": "boolean" }, "n": { "minimum": 0.5, "maximum": 9 } }
    });
    let whole = json!({
        "provider": "spawn",
        "model": "anthropic/claude-sonnet",
        "persona": "You review {{label}}.",
        "tools": { "deny": ["edit", "write"] },
        "max_depth": 2,
        "output_schema": schema,
    });
    assert_eq!((&rows[0].1, &rows[1].1), (&whole, &json!({"provider": "fork"})));
}

#[test]
fn filters_of_tools_only_take_away() {
    let admitted = |user: &str, project: &str| {
        let filter = World::of(user, project).load().unwrap().tools.filter();
        let tools = ["read", "write", "edit", "bash"];
        tools.into_iter().filter(|tool| filter.as_ref().is_none_or(|filter| filter.admits(tool))).collect::<Vec<_>>()
    };
    let (deny, allow) = ("[tools]\ndeny = ['bash']", "[tools]\nallow = ['read', 'write', 'read']");
    assert_eq!(admitted("", ""), ["read", "write", "edit", "bash"]);
    assert_eq!(admitted(deny, ""), ["read", "write", "edit"]);
    assert_eq!(admitted("", deny), ["read", "write", "edit"]);
    assert_eq!(admitted(allow, deny), ["read", "write"]);
    assert_eq!(admitted("[tools]\nallow = ['read', 'edit']", allow), ["read"]);
    assert_eq!(admitted("[tools]\nallow = ['edit']", allow), [""; 0]);
    assert_eq!(admitted("[tools]\nallow = []", ""), [""; 0]);
    assert_eq!(admitted(deny, "[tools]\ndeny = []"), ["read", "write", "edit"]);
    let world = World::of("[tools]\nallow = ['edit', 'read']", allow);
    let users = "[\"edit\",\"read\"] config/tether/config.toml:2";
    assert_eq!(world.told("tools.allow"), format!("[\"read\"] project project/.tether/config.toml:2 < {users}"));
    assert_eq!(World::of("", deny).told("tools.deny"), "\"bash\" project project/.tether/config.toml:2");
}

#[test]
fn tools_that_a_project_cannot_allow() {
    let said = |user: &str, project: &str| {
        let world = World::of(&format!("[tools]\nallow = {user}"), &format!("[tools]\nallow = {project}"));
        let not_taken = world.load().unwrap().not_taken;
        let not_taken: Vec<_> =
            not_taken.iter().map(|not| format!("{} {} {}", not.key, not.value, not.place.line)).collect();
        (world.told("tools.allow"), not_taken.join("; "))
    };
    let users = "config/tether/config.toml:2";
    let both = format!("[\"read\",\"list\"] {users}");
    // Nothing was narrowed by what names the same, or more.
    assert_eq!(said("['read', 'list', 'read']", "['list', 'read']"), (both.clone(), String::new()));
    let more = said("['read', 'list']", "['write', 'list', 'read', 'write']");
    assert_eq!(more, (both.clone(), "tools.allow [\"write\"] 2".to_owned()));
    let part = said("['read', 'list']", "['write', 'list']");
    let narrowed = format!("[\"list\"] project project/.tether/config.toml:2 < {both}");
    assert_eq!(part, (narrowed, "tools.allow [\"write\"] 2".to_owned()));
}
