//! Commands beside others, and what is left of them.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::fixture::{How, Running};
use super::stage::{Stage, Tree, sh, until_there};
use crate::Mode;

#[track_caller]
fn start(stage: &Stage, mode: Mode, script: &str) -> Box<dyn Running> {
    let started = stage.start(&stage.confinement(mode), &sh(script), &stage.root, &[]);
    started.unwrap_or_else(|cannot| panic!("what it can hold was refused: {cannot}"))
}

pub(super) fn commands_at_once_are_held_each_by_its_own(stage: &Stage) {
    let (around, protected) = (stage.around(), stage.protected());
    let wait = "until [ -e go ]; do sleep 0.02; done";
    let plant =
        "{ echo x > .git/hooks/pre-commit; mkdir -p .tether/x; echo x > .git/commondir; echo x > $OUTSIDE/file; }";
    let writes = format!("echo x > a.ready; {wait}; {plant} 2> /dev/null; echo written > by-a");
    let first = start(stage, Mode::WorkspaceWrite, &writes);
    until_there(&stage.root.join("a.ready"));
    let reads = format!("cat a.ready; echo ready; {wait}; {{ echo x > by-b; }} 2> /dev/null; cat src/a.txt");
    let second = start(stage, Mode::ReadOnly, &reads);
    let third = stage.sh(Mode::WorkspaceWrite, "echo written > by-c; cat a.ready");
    assert_eq!(third.exited(0), "x\n", "one that comes and goes beside the others");
    fs::write(stage.root.join("go"), "").expect("the suite may write");
    let said = second.end().exited(0);
    assert_eq!(said, "x\nready\na\n", "one that reads, beside the others");
    first.end().exited(0);
    let written = ["by-a", "by-b", "by-c"].map(|name| stage.root.join(name).exists());
    assert_eq!(written, [true, false, true], "each writes what its own mode lets it");
    stage.around().is_as(&around, "by commands at once, what is outside");
    stage.protected().is_as(&protected, "by commands at once, what is protected");
}

pub(super) fn others_go_on(stage: &Stage) {
    let mut other = Command::new("sleep");
    other.arg("600").env("OF_ANOTHER", "what-another-knows").stdin(Stdio::null()).stdout(Stdio::null());
    let mut other = Ended(other.spawn().expect("there is `sleep`"));
    let script = format!("pid={}; kill -9 $pid; cat /proc/$pid/environ", other.0.id());
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let said = start(stage, mode, &script).end().output;
        let status = other.0.try_wait().expect("it is a child of this process");
        assert_eq!(status, None, "under {mode}, a process of somebody else's was ended");
        let is_open = !stage.is_full();
        assert!(is_open || !said.contains("what-another-knows"), "under {mode}, it read another one's environment");
    }
}

struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes that would rather stay.
const STAY: &str = "
    (sleep 600 &)
    setsid sleep 600 > /dev/null 2>&1 &
    (trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP INT; sleep 600; sleep 600' &) > /dev/null 2>&1
";

/// Nothing is there that was not, but for these files.
#[track_caller]
fn nothing_is_left(stage: &Stage, before: &Tree, files: &[&str]) {
    files.iter().for_each(|name| fs::remove_file(stage.root.join(name)).expect("the command wrote it"));
    let base = stage.root.parent().expect("it is below a place");
    Tree::of([base]).is_as(before, "when a command has ended, what it did not write");
    // One that was killed is gone when its number is.
    let over = Instant::now() + Duration::from_secs(1);
    while !stage.processes().is_empty() && Instant::now() < over {
        sleep(Duration::from_millis(5));
    }
    assert_eq!(stage.processes(), [0_u32; 0], "processes of an ended command go on");
}

fn whole(stage: &Stage) -> Tree {
    Tree::of([stage.root.parent().expect("it is below a place")])
}

pub(super) fn nothing_is_left_of_what_ended(stage: &Stage) {
    let before = whole(stage);
    let rows = [(Mode::ReadOnly, "exit 3", &[][..]), (Mode::WorkspaceWrite, "echo x > new; exit 3", &["new"])];
    for (mode, last, files) in rows {
        start(stage, mode, &format!("{STAY}\n{last}")).end().exited(3);
        nothing_is_left(stage, &before, files);
    }
}

pub(super) fn nothing_is_left_of_what_was_stopped(stage: &Stage) {
    let before = whole(stage);
    let mut running = start(stage, Mode::WorkspaceWrite, &format!("{STAY}\necho x > ready; sleep 600"));
    until_there(&stage.root.join("ready"));
    assert!(!stage.processes().is_empty(), "its processes are to be seen");
    running.stop();
    assert_eq!(running.end().how, How::Stopped);
    nothing_is_left(stage, &before, &["ready"]);
}
