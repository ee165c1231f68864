//! Where another user has filled the places that helpers write to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{getegid, geteuid};
use sandbox::{CommandLine, Enforcement, Mode, SandboxProvider};
use sandbox_linux::LinuxSandbox;

use crate::attacks::{Tier, usable};
use crate::ground::{ground, program};
use crate::runs::{confined, confinement, sh};
use crate::who::{PLACE, Who};
use crate::yard::{Home, Yard};

/// Says to a test that it is in a mount namespace of its own, in which these are full.
const FULL: &str = "IT_FULL";
const MEMORY: &str = "/dev/shm";
/// Where such a namespace has what the test needs.
const APART: &str = "/mnt";

/// Runs one of these tests anew where file systems without any room are mounted over `places`. Whether this is that.
fn is_among_full(test: &str, places: &[&str]) -> bool {
    if std::env::var_os(FULL).is_some() {
        return true;
    }
    if usable().iter().all(|(tier, ..)| *tier != Tier::Best) {
        return false;
    }
    let area = tempfile::tempdir_in(std::env::var_os(PLACE).map_or_else(ground, PathBuf::from)).unwrap();
    let built = program().parent().unwrap().to_owned();
    // Both are to be there also where a place that is covered has them.
    let moved = format!(
        "mount -t tmpfs none {APART} && mkdir {APART}/area {APART}/built && mount --bind {} {APART}/area && \
         mount --bind {} {APART}/built || exit; ",
        area.path().display(),
        built.display()
    );
    let fill = |place: &&str| {
        format!(
            "mount -t tmpfs -o size=1m,nr_inodes=64,mode=1777 none {place} || exit; n=0; \
             while touch {place}/taken$n 2>/dev/null; do n=$((n+1)); done; "
        )
    };
    let fill: String = places.iter().map(fill).collect();
    let mut command = Command::new("unshare");
    // Whoever is not root is so to mount, and then itself again.
    let again = if geteuid().is_root() {
        String::new()
    } else {
        command.args(["--user", "--map-root-user"]);
        format!("unshare --user --map-user={} --map-group={}", geteuid().as_raw(), getegid().as_raw())
    };
    let script = format!("{moved} {fill} exec {again} \"$0\" \"$@\"");
    let [area, built] = ["area", "built"].map(|name| Path::new(APART).join(name));
    let program = built.join(program().file_name().unwrap());
    command.args(["--mount", "sh", "-c", &script]).arg(program).args(["--exact", test, "--nocapture"]);
    let output = command.env(FULL, "1").env(PLACE, &area).env("TMPDIR", &area).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{errors}");
    false
}

fn records() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    let homes = ["/dev/shm", "/var/tmp", "/tmp"].map(|place| Path::new(place).join(format!("tether-{user}")));
    let records = homes.iter().filter_map(|home| fs::read_dir(home).ok()).flatten().flatten().map(|it| it.path());
    records.filter(|path| path.extension().is_some_and(|it| it == "put" || it == "due")).collect()
}

fn about(root: &Path) -> Vec<PathBuf> {
    let mut records = records();
    records.retain(|record| fs::read_to_string(record).is_ok_and(|said| Path::new(&said).starts_with(root)));
    records
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The machine's memory file system is anybody's to fill: that costs no command its tier, and leaves nothing.
#[test]
fn memory_that_is_full_weakens_nothing() {
    if !is_among_full("full::memory_that_is_full_weakens_nothing", &[MEMORY]) {
        return;
    }
    assert!(fs::create_dir(Path::new(MEMORY).join("x")).is_err(), "it is full");
    let sandbox = LinuxSandbox::new();
    assert_eq!(sandbox.enforcement(), Enforcement::Full);
    let yard = Yard::new(Who::Self_, Home::Outside);
    let before = (names(&yard.root), names(&yard.root.join(".git")));
    let script = "mkdir .tether/x; echo x > .git/commondir; ls -A .; echo tried";
    let ran = confined(&sandbox, &yard, Mode::WorkspaceWrite, &sh(script));
    assert!(ran.output.text.contains(".tether\n") && ran.output.text.ends_with("tried\n"), "{ran:?}");
    assert_eq!((names(&yard.root), names(&yard.root.join(".git"))), before, "{ran:?}");
    assert_eq!(about(&yard.root), Vec::<PathBuf>::new());
}

/// Where nothing can be written down, a command is refused that needs it; what the machine can hold is not taken for less, and is
/// there again with the room.
#[test]
fn where_nothing_can_be_written_down_nothing_runs() {
    let user = geteuid().as_raw();
    let run = format!("/run/user/{user}");
    let mut places = vec![MEMORY, "/var/tmp", "/tmp"];
    places.extend(Path::new(&run).is_dir().then_some(&*run));
    if !is_among_full("full::where_nothing_can_be_written_down_nothing_runs", &places) {
        return;
    }
    let why = "cannot be written down anywhere: /dev/shm/tether-";
    let sandbox = LinuxSandbox::new();
    let yard = Yard::new(Who::Self_, Home::Outside);
    let before = (names(&yard.root), names(&yard.root.join(".git")));
    match sandbox.enforcement() {
        Enforcement::None(said) => assert!(said.contains(why), "{said}"),
        held => panic!("{held}"),
    }
    let argv = sh("echo x > ran");
    let command = CommandLine { argv: &argv, cwd: &yard.root };
    let refused = sandbox.confine(&command, &confinement(&yard, Mode::WorkspaceWrite)).unwrap_err();
    assert!(refused.to_string().contains(why), "{refused}");

    let taken = |n: u32| Path::new(MEMORY).join(format!("taken{n}"));
    (0..).take_while(|n| fs::remove_file(taken(*n)).is_ok()).for_each(drop);
    assert_eq!(sandbox.enforcement(), Enforcement::Full, "it was not the machine");
    (0..).take_while(|n| fs::write(taken(*n), "").is_ok()).for_each(drop);
    let ran = confined(&sandbox, &yard, Mode::WorkspaceWrite, &argv);
    assert!(matches!(&ran.how, subprocess::How::SetUpFailed { why: said, .. } if said.contains(why)), "{ran:?}");
    assert_eq!((names(&yard.root), names(&yard.root.join(".git"))), before, "{ran:?}");
}
