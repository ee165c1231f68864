use crate::world::{PROJECTS, USERS, World};

/// One error, at this line and with this in it, in a user's file.
#[track_caller]
fn check(text: &str, line: usize, part: &str) {
    let wrong = World::of(text, "").load().unwrap_err();
    let [told] = &wrong[..] else { panic!("{text:?}: {wrong:#?}") };
    let place = format!("{USERS}:{line}: ");
    assert!(told.starts_with(&place) && told.contains(part), "{text:?}: {told}\nshould say at {line}: {part}");
    assert!(!told.contains('\n') && told.len() < 1000, "{told}");
}

#[test]
fn keys_that_nobody_knows() {
    check("modle = 'a/b'", 1, "unknown key `modle`; did you mean `model`? There are: model, permission, subagent");
    check(
        "[sandbox]\ndefualt = 'read-only'",
        2,
        "did you mean `default`? There are: default, initial_override, tmp, network, protected",
    );
    check("[approval]\n\ndefault_ = 1", 3, "did you mean `default`?");
    check("[budget]\nmax_child = 1", 2, "did you mean `max_children`?");
    check("[offline]\nscrpt = 'x'", 2, "did you mean `script`?");
    check("[tools]\ndenied = []", 2, "did you mean `deny`?");
    check("[permission]\npreset = {}", 2, "did you mean `presets`?");
    check("[permission.presets.a]\nsandbox = 'read-only'\napproval = 'ask'\nmode = 1", 4, "unknown key `mode`");
    check("[[subagent]]\ntool = 'a'\nprovider = 'spawn'\npersonna = 'x'", 4, "did you mean `persona`?");
    check("[[subagent]]\ntool = 'a'\nprovider = 'spawn'\ntools = { alow = [] }", 4, "did you mean `allow`?");
    check(&format!("{} = 1", "k".repeat(100_000)), 1, &format!("unknown key `{}…`", "k".repeat(64)));
    check("\"a\\u001b[2J\" = 1", 1, "unknown key `a\\u{1b}[2J`");
}

#[test]
fn agents_of_other_programs() {
    let with = |row: &str| format!("[[provider.acp]]\nname = 'codex'\ncommand = ['codex-acp']\n{row}");
    check("\n[[provider.acp]]\nname = 'codex'", 2, "`provider.acp` lacks `command`");
    check("[[provider.acp]]\ncommand = ['a']", 1, "`provider.acp` lacks `name`");
    check("[[provider.acp]]\nname = 'a'\ncommand = []", 3, "names no program");
    check("[[provider.acp]]\nname = 'a'\ncommand = 'codex-acp'", 3, "an array of strings");
    check("[[provider.acp]]\nname = 'spawn'\ncommand = ['a']", 2, "one of ours");
    check("[[provider.acp]]\nname = 'a b'\ncommand = ['a']", 2, "ASCII letters");
    check(&with("permission = 'ask'"), 4, "it is allow or reject");
    check(&with("confine = 'full'"), 4, "it is inherit or none");
    check(&with("network = 'some'"), 4, "network");
    check(&with("writeable = []"), 4, "did you mean `writable`?");
    check(&with("[[provider.acp]]\nname = 'codex'\ncommand = ['b']"), 4, "line 1 has a provider named `codex` already");
}

#[test]
fn keys_of_later_versions() {
    let later = "is not supported by this version";
    check("[plugins]\nx = false", 1, &format!("`plugins` {later}"));
    let row = "[[subagent]]\ntool = 'a'\nprovider = 'spawn'\nmode = ";
    check(&format!("{row}'continuable'"), 4, "`subagent.mode`: `continuable` is not supported by this version");
    check(&format!("{row}'eternal'"), 4, "`subagent.mode`: not a kind of child");
}

#[test]
fn values_that_are_wrong() {
    check("model = 3", 1, "`model`: expected a string, found an integer");
    check("model = 'gpt-5'", 1, "provider/model");
    check("sandbox = 'read-only'", 1, "`sandbox`: expected a table, found a string");
    check("[sandbox]\ntmp = 'mine'", 2, "`sandbox.tmp`: not a temporary directory: it is private or shared");
    check("[sandbox]\nnetwork = true", 2, "`sandbox.network`: expected a string, found a boolean");
    check("[sandbox]\nnetwork = 'some'", 2, "`sandbox.network`: not an access to the network: it is allowed or denied");
    check("[sandbox]\ndefault = 'wide'", 2, "`sandbox.default`: no sandbox mode named `wide`: use `read-only`");
    check("[sandbox]\ninitial_override = 'no'", 2, "expected a boolean, true or false, found a string");
    check("[sandbox]\nprotected = 'x'", 2, "expected an array of strings, found a string");
    check("[sandbox]\nprotected = [\n'x',\n1]", 4, "`sandbox.protected`: expected a string, found an integer");
    check("[sandbox]\nprotected = ['x', ' ']", 2, "an empty path protects nothing");
    check("[approval]\ndefault = 'always'", 2, "not an approval policy: it is ask or never");
    check("[approval]\ndefault = [2026-11-30]", 2, "expected a string, found an array");
    for key in ["max_depth", "max_children", "max_children_total", "tokens", "seconds"] {
        for (value, told) in [("-1", "-1 is not a whole number"), ("1.5", "found a float"), ("'3'", "found a string")] {
            check(&format!("[budget]\n{key} = {value}"), 2, told);
        }
        check(&format!("[budget]\n{key} = 99999999999999999999"), 2, "");
    }
    check(
        "[budget]\nmax_depth = 4294967296",
        2,
        "4294967296 is not a whole number that fits: it is at least 0 and at most 4294967295",
    );
    check("[budget]\ntokens = 0", 2, "at least 1");
    check("[budget]\nseconds = 0", 2, "at least 1");
    check("[tools]\nallow = 'read'", 2, "`tools.allow`: expected an array of strings");
    check("[tools]\ndeny = [1]", 2, "`tools.deny`: expected a string");
    check("[offline]\nscript = []", 2, "`offline.script`: expected a string, found an array");
}

#[test]
fn paths_that_nothing_can_have() {
    let protected = |path: &str| format!("[sandbox]\nprotected = [\n\"ok\",\n\"{path}\"]");
    check(&protected("a\\u0000b"), 4, "`sandbox.protected`: `a\\0b` holds a NUL");
    check(&protected(&format!("a/{}/b", "n".repeat(256))), 4, "has 256 bytes: a name has at most 255");
    check(&protected(&"a/".repeat(2048)), 4, "a path of 4096 bytes: it has at most 4095");
    let longest = [format!("a/{}/b", "n".repeat(255)), format!("{}a", "a/".repeat(2047))];
    for path in longest {
        World::of(&protected(&path), &protected(&path)).load().unwrap();
    }
}

#[test]
fn more_paths_than_can_be_protected() {
    let protected = |count: usize| format!("[sandbox]\nprotected = [\n{}]", "'a',\n".repeat(count));
    assert_eq!(World::of(&protected(128), "").load().unwrap().protected.len(), 128);
    check(&protected(129), 131, "`sandbox.protected`: 129 paths");
    // The first that is too many, whoever said the others.
    let wrong = World::of(&protected(100), &protected(50_000)).load().unwrap_err();
    let [told] = &wrong[..] else { panic!("{} errors", wrong.len()) };
    assert!(told.starts_with(&format!("{PROJECTS}:31: ")) && told.contains("at most 128 can be protected"), "{told}");
}

#[test]
fn presets_that_are_wrong() {
    let whole = "sandbox = 'read-only'\napproval = 'ask'";
    check("permission = 1", 1, "expected a table");
    check("[permission]\npresets = []", 2, "expected a table, found an array");
    check("[permission.presets]\nx = 'read-only'", 2, "`permission.presets.x`: expected a table");
    check("[permission.presets.x]\napproval = 'ask'", 1, "`permission.presets.x` lacks `sandbox`");
    check("[permission.presets.x]\nsandbox = 'read-only'", 1, "`permission.presets.x` lacks `approval`");
    check("[permission.presets.x]\nsandbox = 'wide'\napproval = 'ask'", 2, "no sandbox mode named `wide`");
    check("[permission.presets.x]\nsandbox = 'read-only'\napproval = 'maybe'", 3, "ask or never");
    check(&format!("\n[permission.presets.custom]\n{whole}"), 2, "no permission preset can be named `custom`");
    check(&format!("[permission.presets.'a b']\n{whole}"), 1, "does not name a permission preset");
}

#[test]
fn rows_that_are_wrong() {
    let row = "\n[[subagent]]\ntool = 'a'\nprovider = 'spawn'\n";
    check("[subagent]\ntool = 'a'", 1, "`subagent`: expected rows: write [[subagent]], found a table");
    check("[[subagent]]\nprovider = 'spawn'", 1, "`subagent` lacks `tool`");
    check("[[subagent]]\ntool = 'a'", 1, "`subagent` lacks `provider`");
    check(&format!("{row}{row}"), 6, "line 2 has a tool named `a` already");
    for name in ["", "a b", "a.b", "é", &"a".repeat(65)] {
        check(&format!("[[subagent]]\ntool = '{name}'\nprovider = 'spawn'"), 2, "a tool's name is 1 to 64 ASCII");
    }
    let reserved = "[[subagent]]\nprovider = 'spawn'\ntool = 'submit_result'";
    check(reserved, 3, "`subagent.tool`: `submit_result` is the tool that a child hands its result in with");
    check(&format!("{row}model = 'sonnet'"), 5, "`subagent.model`: `sonnet` is not a model");
    check(&format!("{row}persona = 'for {{{{user}}}}'"), 5, "a persona knows no variable `user`; there are: cwd");
    check(&format!("{row}persona = '{{{{cwd'"), 5, "without `}}`");
    check(&format!("{row}persona = ' '"), 5, "must say something");
    check(&format!("{row}tools = ['read']"), 5, "`subagent.tools`: expected a table");
    check(&format!("{row}max_depth = -2"), 5, "`subagent.max_depth`: -2");
    check(&format!("{row}output_schema = 'object'"), 5, "its `type` must be \"object\"");
    check(&format!("{row}output_schema = {{ type = 'object', pattern = 'x' }}"), 5, "pattern");
    let nested = "output_schema = { type = 'object', properties = { n = { type = 'int' } } }";
    check(&format!("{row}{nested}"), 5, "/properties/n");
    check(&format!("{row}output_schema = {{ type = 'object', const = 2026-11-30 }}"), 5, "is a date");
    check(&format!("{row}output_schema = {{ type = 'object', const = inf }}"), 5, "inf has no equal in JSON");
}

#[test]
fn everything_that_is_wrong_is_told_in_the_order_of_layers_and_lines() {
    let world = World::of("[budget]\ntokens = 0\nsecnds = 1\n[sandbox]\ndefault = 'x'", "model = 'a/b'\nx = 1");
    let world = world.set("TETHER_BUDGET_SECONDS", "0").set("TETHER_SANDBX", "x");
    let wrong = world.load().unwrap_err();
    let places: Vec<&str> = wrong.iter().map(|told| told.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        [
            &format!("{USERS}:2"),
            &format!("{USERS}:3"),
            &format!("{USERS}:5"),
            &format!("{PROJECTS}:1"),
            &format!("{PROJECTS}:2"),
            "$TETHER_BUDGET_SECONDS",
            "$TETHER_SANDBX",
        ]
    );
    let all = world.boot().configure(&world.path("project"), Default::default()).unwrap_err().to_string();
    assert!(all.ends_with("(and 6 more)"), "{all}");
}

#[test]
fn a_file_of_nothing_but_mistakes_says_no_more_than_fifty() {
    let text: String = (0..20_000).map(|at| format!("k{at}=1\n")).collect();
    assert_eq!(World::of("", &text).load().unwrap_err().len(), 50);
}

#[test]
fn variables_that_are_wrong() {
    let cases = [
        ("TETHER_MODEL", "gpt", "provider/model"),
        ("TETHER_SANDBOX_DEFAULT", "wide", "`wide`"),
        ("TETHER_SANDBOX_INITIAL_OVERRIDE", "maybe", "`true` or `false`"),
        ("TETHER_APPROVAL_DEFAULT", "always", "ask or never"),
        ("TETHER_BUDGET_MAX_DEPTH", "deep", "digit"),
        ("TETHER_BUDGET_MAX_DEPTH", "-1", "digit"),
        ("TETHER_BUDGET_MAX_CHILDREN", "many", "digit"),
        ("TETHER_BUDGET_MAX_CHILDREN_TOTAL", "1.5", "digit"),
        ("TETHER_BUDGET_TOKENS", "0", "at least 1"),
        ("TETHER_BUDGET_TOKENS", "1e9", "in digits: it is at least 1 and at most 18446744073709551615"),
        ("TETHER_BUDGET_MAX_DEPTH", "4294967296", "at most 4294967295"),
        ("TETHER_BUDGET_SECONDS", "99999999999999999999", "at most 18446744073709551615"),
        ("TETHER_SANDBOX_DEFUALT", "read-only", "did you mean $TETHER_SANDBOX_DEFAULT?"),
    ];
    for (name, value, part) in cases {
        let wrong = World::new().set(name, value).load().unwrap_err();
        let [told] = &wrong[..] else { panic!("{wrong:#?}") };
        assert!(told.starts_with(&format!("${name}: ")) && told.contains(part), "{told}");
    }
    // What says nothing is no mistake, and what is not ours is nobody's business.
    World::new().set("TETHER_SANDBX", "").set("TETHERED", "x").set("OTHER", "x").load().unwrap();
}
