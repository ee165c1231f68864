use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{check_refused, skip};
use crate::run::process::Ran;
use crate::run::world::World;

#[test]
fn a_home_that_cannot_be_one() {
    let world = World::new();
    let file = world.write("area/file", "x");
    let mut homes =
        vec![(file.clone(), 2), (file.join("below"), 2), ("/proc/nowhere".into(), 1), ("/dev/null".into(), 2)];
    let locked = world.path("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::create_dir(locked.join("probe")).is_err() {
        homes.push((locked, 1));
    }
    for (home, status) in homes {
        for json in [false, true] {
            let mut command = world.command(&["run", "say hi"]);
            command.env("TETHER_HOME", &home);
            if json {
                command.arg("--json");
            }
            check_refused(&world, command, b"", status, &[home.to_str().unwrap()]);
        }
    }
}

#[test]
fn a_home_that_is_there_but_holds_something_else() {
    let world = World::new();
    world.write("home/sessions", "x");
    check_refused(&world, world.command(&["run", "say hi"]), b"", 1, &["home/sessions"]);
}

/// What a failed write leaves is whole, and goes on once there is room.
fn check_failed_write(world: &World, ran: &Ran, part: &str) {
    let ran_told = ran.complaint("the task failed");
    assert!(ran_told.contains("could not") && ran_told.contains(part), "{ran_told}");
    assert_eq!(ran.status, 1);
    let logs = world.logs();
    for (id, log) in &logs {
        let resumed = world.tether(&["run", "--resume", id, "say on"]).ended(0);
        assert_eq!(resumed.stdout, "on\n");
        let text = log.text();
        assert!(world.logs()[id].text().starts_with(text), "what was kept is kept");
    }
    assert_eq!(logs.len(), 1);
}

const LONG: &str = "read a.txt; read a.txt; read a.txt; read a.txt; say done";

#[test]
fn a_write_that_fails_half_way() {
    let world = World::new();
    world.write("area/root/a.txt", "words\n".repeat(2_000));
    // Files may have 32 kB: enough for the first step, not for the last.
    let limited = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_tether"), "run", LONG]);
    world.surround(&mut command);
    let ran = Ran::of(command);
    // The part of a line that was written is put aside when the session goes on.
    for name in world.kept() {
        let path = world.path("home/sessions").join(name);
        let bytes = fs::read(&path).unwrap();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        fs::write(&path, &bytes[..whole]).unwrap();
    }
    check_failed_write(&world, &ran, "File too large");
}

#[test]
fn a_disk_that_is_full() {
    let world = World::new();
    world.write("area/root/a.txt", "words\n".repeat(2_000));
    // A disk of its own that goes away with the command; what it held is copied off.
    let script = "mount -t tmpfs -o size=40k none \"$TETHER_HOME\" || exit 77
        \"$0\" \"$@\"; status=$?
        cp -r \"$TETHER_HOME/.\" \"$HOME/copy\"; exit $status";
    fs::create_dir_all(world.path("home")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_tether"), "run", LONG]);
    world.surround(&mut command);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let Ok(output) = command.output() else { return skip("there is no `unshare` here") };
    if output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare: ") {
        return skip("no file system can be mounted here");
    }
    fs::create_dir_all(world.path("home/sessions")).unwrap();
    for entry in fs::read_dir(world.path("user/copy/sessions")).unwrap() {
        let entry = entry.unwrap();
        let bytes = fs::read(entry.path()).unwrap();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        fs::write(world.path("home/sessions").join(entry.file_name()), &bytes[..whole]).unwrap();
    }
    let ran = Ran {
        status: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    };
    check_failed_write(&world, &ran, "No space left on device");
}
