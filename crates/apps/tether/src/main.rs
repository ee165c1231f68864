//! The `tether` command.
//!
//! *Owns:* the command line, what a terminal shows, exit statuses.
//! *Never:* what an app built from the crates could not do itself.

mod acp;
mod cli;
mod config;
mod doctor;
mod exit;
mod opening;
mod read;
mod run;
mod sandboxed;

use std::process::ExitCode;

use bundle::Helper;
use clap::Parser as _;
use clap::error::ErrorKind;
use tracing_subscriber::filter::LevelFilter;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};

fn main() -> ExitCode {
    let helper = Helper::begin();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) if is_help(told.kind()) => {
            // A closed standard output is not worth a word.
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
        Err(wrong) => {
            exit::tell(cli::in_one_line(&wrong));
            return Exit::Usage.into();
        }
    };
    trace(cli.verbose);
    match dispatch(cli, helper) {
        Ok(code) => code,
        Err(failure) => {
            exit::tell(&failure);
            failure.exit().into()
        }
    }
}

fn is_help(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(kind, DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand)
}

fn dispatch(cli: Cli, helper: Helper) -> Result<ExitCode, Failure> {
    let Cli { command, home, .. } = cli;
    let exit = match command {
        Command::Run(task) => run::run(task, home, helper),
        Command::Acp { configuring, switching } => acp::acp(configuring, switching, home, helper),
        Command::Sessions(sessions) => read::sessions(sessions, home),
        Command::Policy(policy) => read::policy(policy, home),
        Command::Config(command) => config::config(command, home),
        Command::Doctor { configuring, json } => doctor::doctor(&configuring, json, home, &helper),
        Command::Sandbox(sandboxed) => return sandboxed::sandboxed(&sandboxed, home, &helper),
    };
    exit.map(ExitCode::from)
}

fn trace(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let writer = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).without_time();
    writer.with_max_level(level).init();
}
