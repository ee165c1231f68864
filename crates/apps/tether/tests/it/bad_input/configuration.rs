use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::check_refused;
use crate::run::world::World;

const USERS: &str = "config/tether/config.toml";
const PROJECTS: &str = "area/root/.tether/config.toml";

/// A file that is refused, with its name and what else.
#[track_caller]
fn check(file: &str, text: impl AsRef<[u8]>, parts: &[&str]) {
    let world = World::new();
    let path = world.write(file, text);
    let told = check_refused(&world, world.command(&["run", "say hi"]), b"", 2, parts);
    assert!(told.contains(path.to_str().unwrap()), "{told}");
}

#[test]
fn a_key_that_is_unknown() {
    check(USERS, "sandbx = 1", &["config.toml:1:", "unknown key `sandbx`", "did you mean `sandbox`"]);
    check(USERS, "\n[sandbox]\nx = 1\n", &["config.toml:3:", "unknown key `x`"]);
    check(USERS, "[sandbox]\ndefualt = 'read-only'", &["config.toml:2:", "did you mean `default`"]);
    check(USERS, "[offline]\nscrpt = 'x'", &["did you mean `script`"]);
    check(PROJECTS, "[budget]\nmax_dept = 1", &["config.toml:2:", "did you mean `max_depth`"]);
    // What is written down and not kept would be worse than an error.
    check(USERS, "[plugins]\nx = false", &["config.toml:1:", "`plugins` is not supported by this version"]);
}

#[test]
fn a_value_that_is_wrong() {
    check(USERS, "[sandbox]\ndefault = 'wide'", &["config.toml:2:", "`wide`", "workspace-write"]);
    check(USERS, "[sandbox]\ndefault = 3", &["config.toml:2:", "string"]);
    check(USERS, "sandbox = 'read-only'", &["config.toml:1:"]);
    check(USERS, "[sandbox]\ninitial_override = 'no'", &["config.toml:2:", "boolean"]);
    check(USERS, "model = 'gpt-5'", &["config.toml:1:", "provider/model"]);
    check(USERS, "[approval]\ndefault = 'always'", &["config.toml:2:", "never"]);
    check(USERS, "[budget]\nmax_depth = -1", &["config.toml:2:"]);
    check(USERS, "[budget]\nmax_depth = 1\nmax_depth = 2", &["config.toml:3:"]);
    check(USERS, "model = ", &["config.toml:1:"]);
    check(USERS, "\n\n]]", &["config.toml:3:"]);
}

#[test]
fn what_is_no_text_file() {
    check(USERS, b"model = '\xff'", &["UTF-8"]);
    check(USERS, vec![b'#'; 256 * 1024 + 1], &["more than 262144 bytes"]);
    for file in [USERS, PROJECTS] {
        let world = World::new();
        std::fs::create_dir_all(world.path(file)).unwrap();
        check_refused(&world, world.command(&["run", "say hi"]), b"", 2, &[file, "not a regular file"]);
    }
    let world = World::new();
    symlink("config.toml", world.path(USERS)).unwrap();
    check_refused(&world, world.command(&["run", "say hi"]), b"", 2, &[USERS, "symbolic links"]);
    let world = World::new();
    symlink("/dev/zero", world.path(USERS)).unwrap();
    check_refused(&world, world.command(&["run", "say hi"]), b"", 2, &[USERS, "not a regular file"]);
}

#[test]
fn a_project_that_would_widen() {
    let users_alone = "for the user's own configuration";
    check(PROJECTS, "model = 'openai/x'", &["config.toml:1:", "`model`", users_alone]);
    check(
        PROJECTS,
        "[sandbox]\ninitial_override = false",
        &["config.toml:2:", "`sandbox.initial_override`", users_alone],
    );
    check(PROJECTS, "\n[offline]\nscript = 'x'", &["`offline`", users_alone]);
    check(PROJECTS, "[[provider.acp]]\nname = 'x'\ncommand = ['evil']", &["config.toml:1:", "`provider`"]);
}

#[test]
fn a_wider_value_of_a_project_is_not_taken() {
    let world = World::new();
    world.config("[approval]\ndefault = 'never'\n[budget]\nmax_depth = 0");
    world.write(
        PROJECTS,
        "[sandbox]\ndefault = 'danger-full-access'\n[approval]\ndefault = 'ask'\n[budget]\nmax_depth = 9",
    );
    let told = world.tether(&["run", "write a.txt x; spawn A { say hi }"]).ended(0).stdout;
    assert!(told.contains("(mode read-only)") && told.contains("limit of 0"), "{told}");
    assert!(!world.path("area/root/a.txt").exists());
}

#[test]
fn a_variable_that_is_wrong() {
    let cases = [
        ("TETHER_SANDBOX_DEFAULT", "wide", "`wide`"),
        ("TETHER_SANDBOX_INITIAL_OVERRIDE", "maybe", "`true` or `false`"),
        ("TETHER_APPROVAL_DEFAULT", "always", "ask or never"),
        ("TETHER_BUDGET_MAX_DEPTH", "deep", "digit"),
        ("TETHER_MODEL", "gpt", "provider/model"),
    ];
    for (name, value, part) in cases {
        let world = World::new();
        let mut command = world.command(&["run", "say hi"]);
        command.env(name, value);
        check_refused(&world, command, b"", 2, &[&format!("${name}: "), part]);
    }
    let world = World::new();
    let mut command = world.command(&["run", "say hi"]);
    command.env_remove("TETHER_HOME").env_remove("HOME");
    check_refused(&world, command, b"", 2, &["neither $TETHER_HOME nor $HOME is set"]);
}

#[test]
fn a_file_of_variables_that_is_wrong() {
    let cases: [(&[u8], &str); 4] = [
        (b"OPENAI_API_KEY sk-not-to-be-seen", "not NAME=value"),
        (b"A=1\nOPENAI_API_KEY=\"sk-not-to-be-seen", "not NAME=value"),
        (b"OPENAI_API_KEY=sk-not-to-be-seen\xff", "UTF-8"),
        (&[b'#'; 256 * 1024 + 1], "more than 262144 bytes"),
    ];
    for (text, part) in cases {
        for named in [true, false] {
            let world = World::new();
            let mut command = world.command(&["run", "say hi"]);
            let path = world.write(if named { "area/keys" } else { "config/tether/.env" }, text);
            if named {
                command.arg("--env-file").arg(&path);
            }
            let told = check_refused(&world, command, b"", 2, &[path.to_str().unwrap(), part]);
            assert!(!told.contains("sk-"), "{told}");
        }
    }
    for path in ["/nonexistent", "/"] {
        let world = World::new();
        check_refused(&world, world.command(&["run", "--env-file", path, "say hi"]), b"", 2, &[path]);
    }
}

#[test]
fn a_repository_cannot_bring_variables() {
    let world = World::new();
    world.write("area/root/.env", "TETHER_SANDBOX_DEFAULT=danger-full-access\nTETHER_MODEL=nobody/x");
    let told = world.tether(&["run", "say hi"]).ended(0).stderr;
    assert!(told.contains("offline/script · read-only"), "{told}");
}

#[test]
fn a_file_of_replies_that_is_wrong() {
    for (text, part) in [("{\"txt\": 1}", ":1:"), ("{\"text\": \"a\"}\n[", ":2:")] {
        let world = World::new();
        let path = world.write("replies.jsonl", text);
        world.config(&format!("model = 'offline/file'\n[offline]\nscript = '{}'", path.display()));
        check_refused(&world, world.command(&["run", "say hi"]), b"", 2, &[path.to_str().unwrap(), part]);
    }
    let world = World::new();
    world.config("[offline]\nscript = '/nonexistent'");
    check_refused(
        &world,
        world.command(&["run", "say hi"]),
        b"",
        2,
        &["config.toml:2: `offline.script`: ", "/nonexistent"],
    );
}

#[test]
fn a_pipe_that_nobody_writes_is_not_waited_for() {
    let world = World::new();
    let pipe = world.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let path = pipe.to_str().unwrap();
    // Its files are not compared: that would wait for the pipe.
    for (args, variable) in [(&["--env-file", path][..], None), (&[], Some("TETHER_OFFLINE_SCRIPT"))] {
        let mut command = world.command(&[&["run", "say hi"], args].concat());
        command.envs(variable.map(|name| (name, path)));
        let told = crate::run::process::Ran::of(command).refused(2);
        assert!(told.contains(path) && told.contains("not a regular file"), "{told}");
        assert!(world.kept().is_empty());
    }
}

#[test]
fn paths_that_cannot_be_protected() {
    let many = format!("[sandbox]\nprotected = [\n{}]", "'a',\n".repeat(300));
    check(PROJECTS, many, &["config.toml:131: ", "300 paths", "at most 128"]);
    check(PROJECTS, "[sandbox]\nprotected = [\"a\\u0000\"]", &["config.toml:2: ", "NUL"]);
    check(PROJECTS, format!("[sandbox]\nprotected = ['{}']", "a".repeat(256)), &["config.toml:2: ", "256 bytes"]);
    // As many as can be work.
    let world = World::new();
    world.write(PROJECTS, format!("[sandbox]\nprotected = [{}]", "'a',".repeat(128)));
    let ran = world.tether(&["run", "--sandbox", "workspace-write", "write a x; write b x"]).ended(0);
    assert!(world.path("area/root/b").exists() && !world.path("area/root/a").exists(), "{}", ran.stdout);
}
