//! The harness dies by `kill -9`.

use std::io::{BufRead as _, BufReader};

use crate::harness;
use crate::support::{Mark, SECOND};

/// How many harnesses die.
const TRIES: usize = 100;

/// Each with the line after which it may be hit: the harness has a helper, or the command is at it. A helper that is
/// stopped when its harness is dead already is out of reach, so that one waits.
const TREES: [(&str, &str); 9] = [
    ("spawned", "echo ready; exec sleep 1000"),
    ("ready", "echo ready; exec sleep 1000"),
    ("spawned", "setsid sh -c 'echo ready; exec sleep 1000' & wait"),
    ("ready", "setsid sh -c 'echo ready; exec sleep 1000' & wait"),
    ("spawned", "while :; do sleep 0.1 & done"),
    ("ready", "echo ready; while :; do sleep 0.1 & done"),
    ("spawned", "(setsid sh -c 'while :; do (setsid sleep 0.1 &); done' &); sleep 1000"),
    ("ready", "(setsid sh -c 'echo ready; while :; do (setsid sleep 0.1 &); done' &); sleep 1000"),
    (
        "ready",
        "kill -STOP $PPID; until grep -q 'State:.T' /proc/$PPID/status; do :; done; setsid sleep 1000 & echo ready; wait",
    ),
];

// D-64
#[test]
fn a_killed_harness_leaves_no_process() {
    for (moment, script) in TREES.into_iter().cycle().take(TRIES) {
        let mark = Mark::new();
        let mut harness = harness::start("hold", &[&mark.0, script]).spawn().unwrap();
        let mut lines = BufReader::new(harness.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == moment), "it ended before it was killed");
        harness.kill().unwrap();
        harness.wait().unwrap();
        mark.is_gone_within(SECOND);
    }
}
