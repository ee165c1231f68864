//! One table of everything that is measured, with its goals.

mod row;

use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use row::Row;

use crate::process;
use crate::workspace::Workspace;

/// What has to be measured, in the order of the table. A benchmark that no longer says one of these has lost it.
const GOALS: [&str; 21] = [
    "spawn, one-turn reply, dispose, sequential",
    "the same, 100 at once, 2 threads",
    "durable child ÷ its syncs bare",
    "fork from 1,000 events",
    "fork from 10,000 events",
    "fork from 1,000,000 events",
    "live idle child, forked, 70,000 events, resident",
    "live idle child, spawned, resident",
    "append in memory, template turns",
    "append + one final flush, JSONL",
    "flush every 7 events ÷ bare write and fdatasync",
    "cold resume, 100,000 events, fresh process",
    "decode 100,000 events ÷ a bare parse of the lines",
    "open ÷ read and bare parse",
    "a turn after 10,000 others ÷ on an empty session",
    "process start → `initialize` answered",
    "resident after `initialize`",
    "10,000 durable children: memory after ÷ before",
    "tasks they leave",
    "file handles they leave",
    "locks they leave, beside their parent's",
];

/// Runs every bench target, and prints what all of them say as one table.
pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> anyhow::Result<()> {
    let may_miss = match args {
        [] => false,
        ["--no-fail"] => true,
        other => bail!("`bench` knows `--no-fail` and nothing else, but was given `{}`", other.join(" ")),
    };
    let mut rows = Vec::new();
    let mut any = false;
    for package in &workspace.packages {
        for bench in &package.benches {
            any = true;
            rows.extend(measure(workspace, &package.name, bench)?);
        }
    }
    ensure!(any, "no package has a bench target");
    let missed = row::missed(&rows, &GOALS);
    print!("{}", row::table(&rows, &GOALS));
    match missed.len() {
        0 => println!("\nevery goal is met"),
        _ => println!("\nmissed: {}", missed.join("; ")),
    }
    ensure!(may_miss || missed.is_empty(), "goals missed: {}", missed.len());
    Ok(())
}

/// Runs one, and no unit tests beside it: those would not understand a benchmark's arguments.
fn measure(workspace: &Workspace, package: &str, bench: &str) -> anyhow::Result<Vec<Row>> {
    eprintln!("measuring {package}/{bench}");
    let mut cargo: Command = process::cargo(&workspace.root);
    cargo.args(["bench", "-q", "-p", package, "--bench", bench]).stderr(Stdio::inherit());
    let output = cargo.output().with_context(|| format!("the benchmark {package}/{bench} could not be started"))?;
    ensure!(output.status.success(), "the benchmark {package}/{bench} failed ({})", output.status);
    let said = String::from_utf8(output.stdout).with_context(|| format!("the words of {package}/{bench}"))?;
    let rows: Vec<Row> = said.lines().filter_map(Row::parse).collect();
    ensure!(!rows.is_empty(), "the benchmark {package}/{bench} said nothing:\n{said}");
    Ok(rows)
}
