//! What a command is handed, and how its end is.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::fixture::How;
use super::stage::{Stage, sh};
use crate::Mode;

/// Words of any kind, and one that is no text.
fn odd() -> Vec<OsString> {
    let words = ["", "two words", "line\nbreak", "'\"$HOME\\", "é"].map(OsString::from);
    words.into_iter().chain([OsString::from_vec(vec![b'a', 0xff, b'b'])]).collect()
}

pub(super) fn the_environment_is_as_given(stage: &Stage) {
    let more = odd().into_iter().enumerate().map(|(n, value)| (format!("ODD_{n}").into(), value));
    let more: Vec<(OsString, OsString)> = more.collect();
    let given: Vec<String> = more.iter().map(|(name, value)| format!("{name:?}={value:?}")).collect();
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let confinement = stage.confinement(mode);
        let started = stage.start(&confinement, &stage.probe(&["environment"]), &stage.root, &more);
        let said = started.unwrap_or_else(|cannot| panic!("what it can hold was refused: {cannot}")).end().exited(0);
        let names = ["PATH", "TMPDIR", "ROOT", "OUTSIDE", "OWN", "TEMP", "SANDBOX_CONTRACT"];
        let is_ours = |line: &&str| names.iter().any(|name| line.starts_with(&format!("{name:?}=")));
        let (ours, mut others): (Vec<&str>, Vec<&str>) = said.lines().partition(is_ours);
        assert_eq!(ours.len(), names.len(), "under {mode}, each of the given variables, once: {ours:?}");
        others.sort_unstable();
        assert_eq!(others, given, "under {mode}, the given variables and no others");
    }
}

pub(super) fn arguments_and_directory_are_as_given(stage: &Stage) {
    let cwd = stage.root.join("src/deep");
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let argv = [stage.probe(&["arguments"]), odd()].concat();
        let started = stage.start(&stage.confinement(mode), &argv, &cwd, &[]);
        let said = started.unwrap_or_else(|cannot| panic!("what it can hold was refused: {cannot}")).end().exited(0);
        let given = std::iter::once(cwd.clone().into_os_string()).chain(odd());
        let lines: Vec<String> = given.map(|word| format!("{word:?}")).collect();
        assert_eq!(said.lines().collect::<Vec<_>>(), lines, "under {mode}, the directory and the arguments");
    }
}

pub(super) fn no_more_than_the_streams_is_open(stage: &Stage) {
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        let said = stage.run(&stage.confinement(mode), &stage.probe(&["descriptors"])).exited(0);
        assert_eq!(said, "", "under {mode}, it was handed more than its three streams");
    }
}

pub(super) fn it_ends_as_the_command_did(stage: &Stage) {
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite] {
        for code in [0, 1, 7, 125, 126, 127, 255] {
            let ended = stage.run(&stage.confinement(mode), &sh(&format!("echo said; echo more >&2; exit {code}")));
            assert_eq!((ended.how, &*ended.output), (How::Exited(code), "said\nmore\n"), "under {mode}, exit {code}");
        }
        for signal in [9, 15, 10] {
            let ended = stage.run(&stage.confinement(mode), &sh(&format!("kill -{signal} $$")));
            assert_eq!(ended.how, How::Signaled(signal), "under {mode}, signal {signal}");
        }
    }
}
