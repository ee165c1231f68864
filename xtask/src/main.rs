//! The project's own checks: `cargo xtask ci` is what a change has to pass.
//!
//! *Owns:* the order of the checks, the rules about how crates depend on each other, notes, promises, snapshots, house rules.
//! *Never:* behaviour of the product; a network access of its own (the cargo commands it runs may need one).
//!
//! A check is a pure function from what is on disk to a list of complaints, so that its tests can show it failing.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks on its streams")]

mod bench;
mod ci;
mod family;
mod graph;
mod house;
mod mutants;
mod mutations;
mod notes;
mod picture;
mod process;
mod promises;
mod real;
mod rustdoc;
mod snapshots;
mod workspace;

use std::process::ExitCode;

use anyhow::bail;
use workspace::Workspace;

const HELP: &str = "\
usage: cargo xtask <command>

  ci                       everything that a change has to pass, stopping at the first failure
  graph [--write]          who may depend on whom; --write redraws the picture in crates/README.md
  notes [--promises] [--require]
                           the form of the notes; which test proves which promise; fail if one is unproven
  promises [NAME]          take away what keeps a promise, patch by patch, and see its tests fail
  mutants [CRATE [FLAG…]]  change what decides policy, see a test fail each time; needs cargo-mutants and cargo-nextest
  snapshots [--update]     every scenario has its snapshots, none is pending; --update records them again
  house                    file lengths, unfinished work, machine paths, what every crate says of itself
  bench [--no-fail]        every benchmark, as one table; fails if a goal is missed, unless told not to
  real --kit DIR [--only NAME…]
                           install and drive programs of others, as clients and as children, and print a table";

fn main() -> ExitCode {
    if rustdoc::is_wanted() {
        return rustdoc::run();
    }
    if real::is_recorder() {
        return real::record();
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> anyhow::Result<ExitCode> {
    match args {
        ["ci"] => return Ok(ci::run()),
        ["graph"] => graph::run(&Workspace::load()?, graph::Picture::Check)?,
        ["graph", "--write"] => graph::run(&Workspace::load()?, graph::Picture::Write)?,
        ["notes", flags @ ..] => notes::run(&Workspace::load()?, &notes::Ask::parse(flags)?)?,
        ["promises"] => mutations::run("")?,
        ["promises", name] => mutations::run(name)?,
        ["mutants"] => mutants::run(&Workspace::load()?, None, &[])?,
        ["mutants", name, rest @ ..] => mutants::run(&Workspace::load()?, Some(name), rest)?,
        ["snapshots"] => snapshots::check(&Workspace::load()?)?,
        ["snapshots", "--update"] => snapshots::update(&Workspace::load()?)?,
        ["house"] => house::run(&Workspace::load()?)?,
        ["bench", rest @ ..] => bench::run(&Workspace::load()?, rest)?,
        ["real", rest @ ..] => real::run(&Workspace::load()?, rest)?,
        [] | ["help" | "--help" | "-h"] => println!("{HELP}"),
        other => bail!("no such command: `{}`\n\n{HELP}", other.join(" ")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what a check found, and fails if it found anything.
fn report(check: &str, complaints: &[String], fine: &str) -> anyhow::Result<()> {
    for complaint in complaints {
        println!("{check}: {complaint}");
    }
    match complaints.len() {
        0 => println!("{check}: {fine}"),
        1 => bail!("{check}: one complaint"),
        n => bail!("{check}: {n} complaints"),
    }
    Ok(())
}
