//! What is kept of sessions in the machine's temporary directory, against the commands and file tools of others.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::commands::confines;
use crate::run::process::{Ran, Running};
use crate::run::world::World;

/// Tries to write in everything that is any session's, and to take it away. What it could, it writes down.
const FORGES: &str = "did() { echo $* >> did; }; for dir in $D/tether-*/tether-* $D/tether-*; do for in in $dir $dir/output; do \
    [ -d $in ] && echo FORGED > $in/new && did new $in; done; \
    for file in $dir/output/* $dir/tether-scratch.lock; do [ -e $file ] || continue; echo FORGED > $file && did write $file; \
    ln $file $D/alias && echo FORGED > $D/alias && did link $file; rm -f $file && did rm $file; done; \
    [ -d $dir ] && mv $dir $D/away && did mv $dir; [ -d $dir ] && rm -rf $dir && did rm $dir; done; \
    mkdir -p $D/tether-$(id -u)/tether-forged && did mkdir; touch tried";

/// What is where, but for what a session's own commands may change.
fn kept(dir: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let (mut all, mut ahead) = (BTreeMap::new(), vec![dir.to_owned()]);
    while let Some(path) = ahead.pop() {
        let found = path.symlink_metadata().unwrap();
        let content = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        if found.is_dir() {
            ahead.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        all.insert(path, (found.mode(), found.ino(), content));
    }
    all
}

/// One user's directories, with this as the temporary one.
struct Place {
    world: World,
    temp: PathBuf,
}

impl Place {
    fn new(world: World, config: &str, temp: &str) -> Self {
        world.config(config);
        let temp = world.path(temp);
        for dir in [&temp, &world.path("area/other")] {
            fs::create_dir_all(dir).unwrap();
        }
        Self { world, temp }
    }

    fn command(&self, cwd: &str, task: &str) -> Command {
        let mut command = self.world.command(&["run", "--sandbox", "workspace-write", "--cwd"]);
        command.arg(self.world.path(cwd)).arg(task).env("TMPDIR", &self.temp);
        command
    }

    /// A session that has kept output, and goes on until it is let.
    fn victim(&self, cwd: &str) -> (Running, PathBuf) {
        let go = self.world.path(cwd).join("go");
        let task =
            r#"bash "seq 1 20000"; bash "touch ready; until [ -e go ]; do sleep 0.02; done"; bash "true"; say done"#;
        let running = Running::start(self.command(cwd, task));
        let ready = self.world.path(cwd).join("ready");
        crate::commands::until("the victim runs", || ready.exists());
        fs::remove_file(ready).unwrap();
        (running, go)
    }

    /// Where the victim keeps what is its own.
    fn scratch(&self) -> PathBuf {
        let user = self.world.root().metadata().unwrap().uid();
        let all = self.temp.join(format!("tether-{user}"));
        let mut sessions = fs::read_dir(&all).unwrap().map(|entry| entry.unwrap().path());
        let found = sessions.next().unwrap();
        assert_eq!(sessions.next(), None);
        found
    }

    fn told(&self) -> String {
        let logs = self.world.kept();
        let logs = logs.iter().filter(|name| name.ends_with(".jsonl"));
        logs.map(|name| fs::read_to_string(self.world.path("home/sessions").join(name)).unwrap()).collect()
    }
}

/// A command and a file tool change nothing of another session, nor of what is kept of their own.
#[test]
fn nobody_writes_what_is_kept_of_a_session() {
    let shared = "[sandbox]\ntmp = 'shared'\n";
    for (config, temp, victim) in [
        (shared, "temp", "area/other"),
        // The same workspace.
        (shared, "temp", "area/root"),
        // Both are in the workspace of the one that attacks, and one is its own.
        ("", "area/root/temp", "area/other"),
        (shared, "area/root/temp", "area/other"),
    ] {
        let place = Place::new(World::beside_tmp(), config, temp);
        if !confines(&place.world) {
            return;
        }
        let (running, go) = place.victim(victim);
        let scratch = place.scratch();
        let before = kept(&scratch);
        assert!(before.keys().any(|path| path.parent() == Some(&*scratch.join("output"))), "{before:?}");

        let all = scratch.parent().unwrap().display();
        let forges = FORGES.replace("$D", place.temp.to_str().unwrap());
        let task = format!(
            "bash \"seq 1 20000\"; bash {forges:?}; write {all}/tether-abcdef/tether-scratch.lock x; \
             write {}/output/new x; say done",
            scratch.display()
        );
        let ran = Ran::of(place.command("area/root", &task));
        assert_eq!(ran.status, 0, "{}\n{}", ran.stdout, ran.stderr);
        let told = place.told();
        assert_eq!(kept(&scratch), before, "{config} {temp} {victim}: {told}");
        assert!(!scratch.parent().unwrap().join("tether-abcdef").exists());
        let root = place.world.root();
        assert!(
            root.join("tried").exists() && !root.join("did").exists(),
            "{:?}",
            fs::read_to_string(root.join("did"))
        );

        // What another process sweeps is not this one's.
        assert_eq!(Ran::of(place.command("area/root", r#"bash "sleep 0.3"; say done"#)).status, 0);
        assert_eq!(kept(&scratch), before, "{config} {temp} {victim}");
        fs::write(go, "").unwrap();
        assert_eq!(running.finish().status, 0);
        let user = place.world.root().metadata().unwrap().uid();
        assert!(!place.temp.join(format!("tether-{user}")).exists(), "it goes with the last session");
    }
}

/// Where the temporary directory is inside the workspace, a session's own is not, and works.
#[test]
fn a_session_is_apart_from_its_workspace() {
    let place = Place::new(World::beside_tmp(), "", "area/root/temp");
    if !confines(&place.world) {
        return;
    }
    let task = r#"bash "seq 1 20000"; bash "echo x > $TMPDIR/x && cat $TMPDIR/x && echo tmp:$TMPDIR:"; say done"#;
    assert_eq!(Ran::of(place.command("area/root", task)).status, 0);
    let told = place.told();
    let temp = told.split("tmp:").map(|rest| rest.split(':').next().unwrap()).find(|it| it.starts_with('/')).unwrap();
    assert!(!Path::new(temp).starts_with(place.world.root()), "{temp}");
    let mut command = place.world.command(&["sandbox", "--sandbox", "workspace-write", "--", "sh", "-c"]);
    command.arg("echo x > $TMPDIR/x && echo $TMPDIR").env("TMPDIR", &place.temp);
    let ran = Ran::of(command);
    assert!(ran.status == 0 && !Path::new(ran.stdout.trim()).starts_with(place.world.root()), "{ran:?}");
}

/// `tether sandbox` holds it as well, though it has no session, also while a session begins.
#[test]
fn a_command_without_a_session_writes_nothing_of_one() {
    let place = Place::new(World::beside_tmp(), "[sandbox]\ntmp = 'shared'\n", "temp");
    if !confines(&place.world) {
        return;
    }
    let forges = FORGES.replace("$D", "$TMPDIR");
    let mut command = place.world.command(&["sandbox", "--sandbox", "workspace-write", "--", "sh", "-c"]);
    command
        .arg(format!("touch began; until [ -e forge ]; do sleep 0.02; done; {forges} 2>&1"))
        .env("TMPDIR", &place.temp);
    let attacker = Running::start(command);
    crate::commands::until("the attacker runs", || place.world.root().join("began").exists());
    let (running, go) = place.victim("area/other");
    let all = place.temp.join(format!("tether-{}", place.world.root().metadata().unwrap().uid()));
    let before = kept(&all);
    fs::write(place.world.root().join("forge"), "").unwrap();
    let ran = attacker.finish();
    let root = place.world.root();
    assert!(root.join("tried").exists() && !root.join("did").exists(), "{}", ran.stdout);
    assert_eq!(kept(&all), before);
    fs::write(go, "").unwrap();
    assert_eq!(running.finish().status, 0);
}

/// The app where it can make no namespaces.
fn limited(world: &World, args: &[&str]) -> Command {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", script, env!("CARGO_BIN_EXE_tether")]).args(args);
    world.surround(&mut command);
    command.env("PATH", std::env::var_os("PATH").as_deref().unwrap_or(OsStr::new("/usr/bin:/bin")));
    command
}

/// A machine on which less can be held than on others: that is never a secret.
#[test]
fn what_is_held_in_part_is_said() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    let ran = Ran::of(limited(&world, &["sandbox", "--", "sh", "-c", "echo ran; echo x > new"]));
    assert!(ran.stdout == "ran\n" && !world.root().join("new").exists(), "{ran:?}");
    let said = ran.complaint("only in part here");
    assert!(said.contains("not everything can be held: namespaces: "), "{said}");
    let ran = Ran::of(limited(&world, &["run", "--sandbox", "read-only", r#"bash "true"; say done"#]));
    assert_eq!(ran.status, 0, "{ran:?}");
    let told: String = world.logs().values().map(|log| log.text()).collect();
    assert!(
        told.contains("[the sandbox holds commands only in part here: not everything can be held: namespaces: "),
        "{told}"
    );

    // What cannot be kept from a command here is not run.
    let shared = Place::new(World::beside_tmp(), "[sandbox]\ntmp = 'shared'\n", "temp");
    let in_shared = |args: &[&str]| {
        let mut command = limited(&shared.world, args);
        command.env("TMPDIR", &shared.temp);
        Ran::of(command)
    };
    let ran = in_shared(&["sandbox", "--sandbox", "workspace-write", "--", "touch", "ran"]);
    assert!(ran.status == 125 && !shared.world.root().join("ran").exists(), "{ran:?}");
    let why = "where sessions' temporary directories are, cannot be kept from a command";
    assert!(ran.stderr.contains(why), "{ran:?}");
    let ran = in_shared(&["doctor"]);
    let mode = ran.stdout.lines().find(|line| line.contains("workspace-write")).unwrap();
    assert!(mode.contains(why), "{}", ran.stdout);
}

/// Why nothing is run is said as it is: it is not the machine.
#[test]
fn where_git_cannot_be_followed_that_is_what_is_said() {
    let world = World::beside_tmp();
    if !confines(&world) {
        return;
    }
    world.write("area/root/.git/HEAD", "ref: refs/heads/main\n");
    world.write("area/root/.git/config", format!("#{}\n", "x".repeat(4 * 1024 * 1024)));
    let ran = world.tether(&["sandbox", "--sandbox", "workspace-write", "--", "touch", "ran"]);
    assert_eq!(ran.status, 125);
    let said = ran.complaint("git's configuration cannot be followed");
    assert!(
        said.contains("what is protected in the workspace cannot be told") && !said.contains("confined here"),
        "{said}"
    );
    let ran = world.tether(&["run", "--sandbox", "workspace-write", r#"bash "touch ran"; say done"#]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let told: String = world.logs().values().map(|log| log.text()).collect();
    assert!(told.contains("what is protected in the workspace cannot be told: git's configuration"), "{told}");
    assert!(!told.contains("cannot be confined here") && !world.root().join("ran").exists(), "{told}");
}
