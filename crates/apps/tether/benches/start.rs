//! What an editor waits for: `tether acp` from its start to the answer of `initialize`, and what it then holds in memory.

#![expect(clippy::print_stdout, reason = "a bench prints its rows")]

#[path = "../../../core/session/benches/common/mod.rs"]
mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

fn main() {
    const ROUNDS: usize = 100;
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let mut resident = 0;
    let answered = fastest(ROUNDS, || {
        let (took, holds) = start(home.path());
        resident = resident.max(holds);
        took
    });
    at_most("process start → `initialize` answered", answered, Unit::Time, 5e-3);
    at_most("resident after `initialize`", resident as f64, Unit::Bytes, 8.0 * 1024.0 * 1024.0);
}

fn start(home: &std::path::Path) -> (Duration, usize) {
    let mut tether = Command::new(env!("CARGO_BIN_EXE_tether"));
    tether.arg("acp").arg("--home").arg(home).current_dir(home);
    let begun = Instant::now();
    let mut tether = tether.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it is built");
    let mut input = tether.stdin.take().expect("a pipe");
    writeln!(input, "{INITIALIZE}").expect("it reads");
    let mut answer = String::new();
    BufReader::new(tether.stdout.as_mut().expect("a pipe")).read_line(&mut answer).expect("it answers");
    let took = begun.elapsed();
    assert!(answer.contains("\"protocolVersion\":1"), "{answer}");
    let holds = resident_of(&tether.id().to_string());
    drop(input);
    assert!(tether.wait().expect("it ends").success());
    (took, holds)
}
