//! Commands, in the app as it is: held to their session's mode by the kernel, in children too, and gone when they should be.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::run::process::Ran;
use crate::run::terminal::{Terminal, say_yes};
use crate::run::world::World;

/// Without it, a machine that cannot confine skips what follows, and says so.
const ENFORCED: &str = "TETHER_TEST_ENFORCED";

/// Whether commands can be confined here, as the app itself says.
pub(crate) fn confines(world: &World) -> bool {
    let said = world.tether(&["doctor", "--json"]).stdout;
    let full = said.lines().any(|line| line.contains(r#""topic":"sandbox""#) && line.contains("full: "));
    let required = std::env::var_os(ENFORCED).is_some_and(|value| value == "1");
    assert!(full || !required, "{ENFORCED} is set, and this machine cannot confine commands:\n{said}");
    if !full {
        // Past the harness of tests, which keeps to itself what a test prints that passes.
        let _ = writeln!(std::io::stderr(), "NOT RUN: commands cannot be confined here:\n{said}");
    }
    full
}

/// Everything that every session of a world was told by its tools.
fn told(world: &World) -> String {
    let logs = world.kept();
    let logs = logs.iter().filter(|name| name.ends_with(".jsonl"));
    logs.map(|name| fs::read_to_string(world.path("home/sessions").join(name)).unwrap()).collect()
}

fn content(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[track_caller]
fn run(world: &World, mode: &str, task: &str) -> Ran {
    let ran = world.tether(&["run", "--sandbox", mode, task]);
    assert_eq!(ran.status, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran
}

#[test]
fn the_mode_holds_a_command() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    run(
        &world,
        "read-only",
        r#"bash "echo x > in.txt"; bash "cat /etc/hostname > /dev/null && echo read it"; say done"#,
    );
    assert_eq!(content(world.path("area/root/in.txt")), None);
    let told_of = told(&world);
    assert!(told_of.contains("sandbox denied: write ") && told_of.contains("(mode read-only)"), "{told_of}");
    assert!(told_of.contains("read it"));

    run(&world, "workspace-write", r#"bash "echo in > in.txt; echo out > ../out.txt"; say done"#);
    assert_eq!(content(world.path("area/root/in.txt")).as_deref(), Some("in\n"));
    assert_eq!(content(world.path("area/out.txt")), None);
    assert!(told(&world).contains("(mode workspace-write)"));

    run(&world, "danger-full-access", r#"bash "echo out > ../out.txt"; say done"#);
    assert_eq!(content(world.path("area/out.txt")).as_deref(), Some("out\n"));
}

/// A file tool and a command have one temporary directory, and it goes with the session.
#[test]
fn the_temporary_directory_is_the_sessions_own() {
    let world = World::new();
    if !confines(&world) {
        return;
    }
    let task = r#"bash "echo hello > $TMPDIR/kept && ls -d $TMPDIR"; bash "cat $TMPDIR/kept"; say done"#;
    run(&world, "workspace-write", task);
    assert!(told(&world).contains("hello"));
    let mine = |entry: fs::DirEntry| entry.path().join("kept").exists();
    assert!(!fs::read_dir(std::env::temp_dir()).unwrap().flatten().any(mine), "nothing of it is left");
}

// D-01
#[test]
fn a_child_three_deep_is_held_by_the_kernel() {
    let world = World::new();
    if !confines(&world) {
        return;
    }
    world.config("[sandbox]\ndefault = 'danger-full-access'\n");
    let deep = r#"spawn A { spawn B { spawn C { bash "echo in > c.txt; echo out > ../c.txt" }; bash "echo out > ../b.txt" } }; say done"#;
    run(&world, "workspace-write", deep);
    assert_eq!(content(world.path("area/root/c.txt")).as_deref(), Some("in\n"));
    assert_eq!((content(world.path("area/c.txt")), content(world.path("area/b.txt"))), (None, None));
    let ran = world.tether(&["policy", "audit"]);
    assert_eq!(ran.status, 0, "{}", ran.stdout);
}

// D-65
#[test]
fn no_secret_is_in_a_commands_environment() {
    let world = World::new();
    let mut command =
        world.command(&["run", "--model", "offline/script", "--sandbox", "danger-full-access", "bash env; say done"]);
    let names =
        ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "DATABASE_URL", "NPM_TOKEN"];
    for (n, name) in names.iter().copied().enumerate() {
        command.env(name, format!("canary-{n}"));
    }
    for n in names.len()..40 {
        command.env(format!("VENDOR{n}_API_TOKEN"), format!("canary-{n}"));
    }
    command.env("LANG", "C.UTF-8").env("PATH", std::env::var_os("PATH").unwrap());
    let ran = Ran::of(command);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let told = told(&world);
    assert!(told.contains("LANG=C.UTF-8"), "{told}");
    assert!(!told.contains("canary"), "{told}");
}

/// How many processes have this among their arguments.
fn running(marker: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|process| {
        let arguments = fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&arguments).into_owned())
    });
    // The harness itself has the task among its own.
    arguments.filter(|arguments| arguments.starts_with("sleep\0") && arguments.contains(marker)).count()
}

#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let over = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < over, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

// D-64
#[test]
fn nothing_outlives_a_harness_that_is_killed() {
    let world = World::new();
    let modes: &[&str] =
        if confines(&world) { &["workspace-write", "danger-full-access"] } else { &["danger-full-access"] };
    for mode in modes {
        for (n, command) in ["sleep M", "setsid -w sleep M", "(setsid sleep M &) ; sleep M"].iter().enumerate() {
            let marker = format!("98765.{}{n}{}", std::process::id(), mode.len());
            let task = format!("bash {:?}; say done", command.replace('M', &marker));
            let running_app = world.start(&["run", "--sandbox", mode, &task]);
            until("the command runs", || running(&marker) > 0);
            running_app.kill();
            let killed = Instant::now();
            until("it is gone", || running(&marker) == 0);
            assert!(killed.elapsed() < Duration::from_secs(1), "{mode}: {command}: {:?}", killed.elapsed());
        }
    }
}

#[test]
fn any_command_runs_under_a_mode() {
    let world = World::new();
    if !confines(&world) {
        return;
    }
    world.tether(&["sandbox", "--sandbox", "workspace-write", "--", "sh", "-c", "echo in > in; echo x > ../out"]);
    assert_eq!((content(world.root().join("in")).as_deref(), content(world.path("area/out"))), (Some("in\n"), None));
    let ran = world.tether(&["sandbox", "--", "sh", "-c", "echo said; echo x > in2; exit 7"]);
    assert_eq!((ran.status, &*ran.stdout), (7, "said\n"), "{}", ran.stderr);
    assert_eq!(content(world.root().join("in2")), None, "the default is read-only");
    let ran = world.tether(&["sandbox", "--", "no-such-program"]);
    assert_eq!(ran.status, 127);
    assert!(ran.stderr.contains("no-such-program"), "{}", ran.stderr);
    let ran = world.tether(&["sandbox"]);
    assert_eq!(ran.status, 2);
    let mut command = world.command(&["sandbox", "--", "true"]);
    command.stdin(fs::File::open(world.root()).unwrap());
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(2), "a directory leads past what holds");
    let held = ["sandbox", "--sandbox", "danger-full-access", "--network", "denied", "--", "true"];
    assert!(world.tether(&held).refused(2).contains("`--network denied` needs a mode that confines"));
    assert_eq!(world.tether(&["sandbox", "--", "/tmp"]).status, 126);
    assert!(world.tether(&["sandbox", "ls"]).refused(2).contains("as in `tether sandbox -- ls`"));
    assert!(world.tether(&["sandbox", "--", ""]).refused(2).contains("has an empty name"));
    assert!(world.tether(&["sandbox", "--", "cd"]).stderr.contains("what only a shell knows runs with `sh -c`"));
    let mut command = world.command(&["sandbox", "--", "true"]);
    let ran = Ran::of({
        command.env("TMPDIR", "/nowhere");
        command
    });
    assert_eq!(ran.status, 125, "{}", ran.stderr);
    assert!(ran.stderr.contains("no temporary directory can be made in /nowhere") && ran.stderr.contains("$TMPDIR"));
    let ran = world.fed(&["sandbox", "--", "cat"], "what it reads");
    assert_eq!((ran.status, &*ran.stdout), (0, "what it reads"));
    let ran = world.tether(&["sandbox", "--", "cat", world.path("config/tether").to_str().unwrap()]);
    assert_ne!(ran.status, 0);
    world.write("home/sessions/secret.jsonl", "a secret");
    let secret = world.path("home/sessions/secret.jsonl");
    let ran = world.tether(&["sandbox", "--sandbox", "workspace-write", "--", "cat", secret.to_str().unwrap()]);
    assert!(ran.status != 0 && !ran.stdout.contains("a secret"), "{}", ran.stdout);
}

/// Sessions that are kept elsewhere are as much Tether's own.
#[test]
fn a_command_sees_no_session_wherever_it_is_kept() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    world.write("disk/sessions/secret.jsonl", "a secret");
    fs::create_dir_all(world.path("home")).unwrap();
    std::os::unix::fs::symlink(world.path("disk/sessions"), world.path("home/sessions")).unwrap();
    let log = world.path("disk/sessions/secret.jsonl");
    let ran = world.tether(&["sandbox", "--", "cat", log.to_str().unwrap()]);
    assert!(ran.status != 0 && !ran.stdout.contains("a secret"), "{}", ran.stdout);
}

/// A call that asks to run outside of the sandbox, and the same without asking.
const ASKS: &str = r#"bash "echo one > ../one; echo in > in" with danger-full-access because "the task says so"; bash "echo two > ../two"; say done"#;

/// What was decided, and which of the two commands ran.
#[track_caller]
fn decided(world: &World, outcome: &str, ran: bool) {
    let log = world.logs().into_values().next().unwrap();
    assert_eq!((log.all("approval/asked").len(), log.all("approval/decided").len()), (1, 1), "{}", log.text());
    assert_eq!(log.all("approval/decided")[0]["outcome"], outcome, "{}", log.text());
    assert_eq!((world.path("area/one").exists(), world.root().join("in").exists()), (ran, ran), "{outcome}");
    assert!(!world.path("area/two").exists(), "what was allowed is one call");
}

#[test]
fn a_person_lets_one_command_out_or_none() {
    for (answer, outcome) in [("y\n", "allowed-once"), ("n\n", "rejected"), ("\n", "rejected")] {
        let world = World::beside_tmp();
        let mut terminal = Terminal::start(world.command(&["run", "--sandbox", "read-only", ASKS]), "");
        assert!(terminal.asked(), "it ended without a question");
        assert!(
            !world.path("area/one").exists() && !world.root().join("in").exists(),
            "nothing runs before the answer"
        );
        terminal.type_in(answer);
        let sat = terminal.finish();
        assert_eq!((sat.status, sat.questions.len()), (0, 1), "{:?}", sat.questions);
        assert!(sat.questions[0].starts_with("bash asks to "), "{:?}", sat.questions);
        decided(&world, outcome, outcome == "allowed-once");
    }
}

#[test]
fn no_command_gets_out_where_nobody_is_asked() {
    let world = World::beside_tmp();
    assert_eq!(world.tether(&["run", "--sandbox", "read-only", ASKS]).status, 0);
    decided(&world, "unavailable", false);
    assert!(told(&world).contains("permission unavailable: nobody could be asked"));
    let world = World::beside_tmp();
    let sat = say_yes(world.command(&["run", "--sandbox", "read-only", "--approval", "never", ASKS]));
    assert_eq!((sat.status, sat.questions.len()), (0, 0), "{:?}", sat.questions);
    decided(&world, "rejected", false);
    assert!(told(&world).contains("permission rejected: the call was not run"));
}

#[test]
fn a_doctor_tells_where_work_goes_wrong() {
    let world = World::new();
    let said = |args: &[&str], temp: Option<&str>| {
        let mut command = world.command(args);
        command.envs(temp.map(|temp| ("TMPDIR", temp)));
        let ran = Ran::of(command);
        (ran.status, ran.stdout)
    };
    let line = |said: &str, name: &str| {
        let found = said.lines().find(|line| line.contains(&format!(r#""name":"{name}""#)));
        found.unwrap_or_else(|| panic!("{name} is missing:\n{said}")).to_owned()
    };
    let (_, at_root) = said(&["doctor", "--json", "--cwd", "/"], None);
    let workspace = line(&at_root, "workspace");
    assert!(workspace.contains(r#""state":"notable""#) && workspace.contains("--cwd"), "{workspace}");
    let mode = line(&at_root, "read-only (default)");
    assert!(mode.contains(r#""state":"bad""#) && mode.contains("every command is refused"), "{mode}");
    world.write("area/file", "");
    for temp in ["/nowhere", world.path("area/file").to_str().unwrap()] {
        let (status, told) = said(&["doctor", "--json"], Some(temp));
        let temporary = line(&told, "temporary");
        assert!(temporary.contains(r#""state":"bad""#) && temporary.contains("$TMPDIR"), "{temporary}");
        assert_eq!(status, 1);
    }
    let (_, told) = said(&["doctor", "--json"], None);
    assert!(["workspace", "temporary", "sessions"].iter().all(|name| line(&told, name).contains(r#""state":"good""#)));
    let (_, told) = said(&["doctor", "--json", "--model", "opneai/gpt-5"], None);
    assert!(line(&told, "opneai/gpt-5 (default)").contains("there is no such provider"));
    let (_, told) = said(&["doctor", "--json", "--model", "openai/gpt-5"], None);
    assert!(line(&told, "openai/gpt-5 (default)").contains("$OPENAI_API_KEY is not set"));
}

#[test]
fn a_doctor_tells_what_holds() {
    let world = World::new();
    let ran = world.tether(&["doctor"]);
    for topic in ["kernel", "sandbox", "mode", "model", "place"] {
        assert!(ran.stdout.lines().any(|line| line == topic), "{topic} is missing:\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("offline/script (default)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("$OPENAI_API_KEY is not set"), "{}", ran.stdout);
    world.config("model = 'openai/gpt-5-mini'\n");
    let ran = world.tether(&["doctor"]);
    assert_eq!(ran.status, 1, "a task would be refused: {}", ran.stdout);
    world.config("model = 3\n");
    assert_eq!(world.tether(&["doctor"]).status, 2);
}
