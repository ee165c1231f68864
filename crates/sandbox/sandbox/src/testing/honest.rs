//! What a provider says of itself, and of a command's end.

use std::path::Path;

use super::fixture::How;
use super::stage::{Stage, sh};
use crate::{CommandLine, Confinement, Denial, Enforcement, Mode, Operation, SandboxProvider};

const CONFINING: [Mode; 2] = [Mode::ReadOnly, Mode::WorkspaceWrite];

pub(super) fn it_says_what_it_holds(stage: &Stage) {
    let provider = &stage.provider;
    assert!(is_a_line(provider.name()), "its name is a line: {:?}", provider.name());
    let says = provider.enforcement();
    assert_eq!(provider.enforcement(), says, "it says the same when it is asked again");
    match &says {
        Enforcement::Full => {}
        Enforcement::Partial(open) => {
            assert!(!open.is_empty(), "it holds in part, and does not say what stays open");
            assert!(open.iter().all(|open| is_a_line(open)), "what stays open is said in lines: {open:?}");
        }
        Enforcement::None(why) => assert!(is_a_line(why), "it holds nothing, and a line says why: {why:?}"),
    }
}

fn is_a_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(['\n', '\r'])
}

pub(super) fn what_cannot_be_held_is_refused(stage: &Stage) {
    let holds_nothing = matches!(stage.provider.enforcement(), Enforcement::None(_));
    let Some(powerless) = stage.powerless().or_else(|| holds_nothing.then(|| stage.provider.clone())) else { return };
    refuses(stage, &*powerless);
}

fn refuses(stage: &Stage, powerless: &dyn SandboxProvider) {
    let says = powerless.enforcement();
    let Enforcement::None(why) = &says else { panic!("without means, it says that it holds: {says}") };
    assert!(is_a_line(why), "without means, a line says why: {why:?}");
    for mode in CONFINING {
        let command = CommandLine { argv: &sh("true"), cwd: &stage.root };
        match powerless.confine(&command, &stage.confinement(mode)) {
            Ok(launch) => panic!("without means, a command would be started under {mode}: {launch:?}"),
            Err(cannot) => assert!(is_a_line(&cannot.why), "a line says why it is refused: {:?}", cannot.why),
        }
    }
}

/// Runs a line, and asks what it was denied.
#[track_caller]
fn found(stage: &Stage, mode: Mode, script: &str) -> (How, Option<Denial>) {
    let (argv, confinement) = (sh(script), stage.confinement(mode));
    let ended = stage.run(&confinement, &argv);
    let command = CommandLine { argv: &argv, cwd: &stage.root };
    (ended.how, stage.provider.evidence(&command, &confinement, &ended.output))
}

pub(super) fn a_denial_is_told_and_shown(stage: &Stage) {
    let rows: [(Mode, &str, &Path); 5] = [
        (Mode::ReadOnly, "echo x > src/new", &stage.root.join("src/new")),
        (Mode::ReadOnly, "rm -f src/a.txt", &stage.root.join("src/a.txt")),
        (Mode::ReadOnly, "mkdir $OUTSIDE/made", &stage.outside.join("made")),
        (Mode::WorkspaceWrite, "echo x > $OUTSIDE/file", &stage.outside.join("file")),
        (Mode::WorkspaceWrite, "touch $OUTSIDE/dir/new", &stage.outside.join("dir/new")),
    ];
    for (mode, script, target) in rows {
        let (how, denial) = found(stage, mode, script);
        assert!(matches!(how, How::Exited(code) if code != 0), "under {mode}, `{script}` failed: {how:?}");
        let denied = Denial::new(Operation::Write, target.to_string_lossy(), mode);
        assert_eq!(denial, Some(denied), "under {mode}, `{script}` was denied");
    }
}

pub(super) fn a_failure_is_no_denial(stage: &Stage) {
    const FAILURES: [&str; 6] = [
        "false",
        "cat nowhere; exit 1",
        "echo 'error: permission denied' >&2; exit 1",
        "echo 'sh: 1: cannot create src/nowhere/x: Read-only file system' >&2; exit 1",
        "no-such-program-anywhere",
        "exit 77",
    ];
    for (mode, script) in CONFINING.into_iter().flat_map(|mode| FAILURES.map(|script| (mode, script))) {
        let (how, denial) = found(stage, mode, script);
        assert!(matches!(how, How::Exited(code) if code != 0), "under {mode}, `{script}` failed: {how:?}");
        assert_eq!(denial, None, "under {mode}, `{script}` failed by itself");
    }
}

pub(super) fn what_could_not_start_did_not_end(stage: &Stage) {
    for mode in CONFINING {
        for program in ["no-such-program-anywhere", "/nowhere/program"] {
            let ended = stage.run(&stage.confinement(mode), &[program.into()]);
            assert_eq!(ended.how, How::NotExecuted, "under {mode}, `{program}`");
        }
    }
    // A workspace that is gone may be held, or not; what is said of the command is to be true.
    let gone = stage.workspace().try_map(|path| {
        Ok::<_, std::convert::Infallible>(if path == stage.root { stage.root.join("gone") } else { path.to_owned() })
    });
    let Ok(gone) = gone;
    let confinement =
        Confinement { boundary: gone.boundary(Mode::WorkspaceWrite), ..stage.confinement(Mode::ReadOnly) };
    let Ok(running) = stage.start(&confinement, &sh("touch $TMPDIR/ran"), &stage.root, &[]) else { return };
    let (how, ran) = (running.end().how, stage.temp.join("ran").exists());
    match how {
        How::Exited(0) => assert!(ran, "it did nothing, and is said to have ended well"),
        How::NotExecuted | How::NotSetUp(_) => assert!(!ran, "it ran, and is said not to have: {how:?}"),
        How::Exited(_) | How::Signaled(_) | How::Stopped | How::Lost(_) => {
            panic!("a workspace that is not there is no end of the command's: {how:?}")
        }
    }
}
