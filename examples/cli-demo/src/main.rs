//! One prompt, headless: the answer goes to the standard output, and the exit status says how it went.
//!
//! The whole composition over `agent-spine-demo`, with files, children and every model that a key is set for. What it keeps
//! goes with it: `tether run` is for whoever wants to look at the logs, or to go on.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program tells how it went")]

use std::path::PathBuf;
use std::process::ExitCode;

use agent::Agent;
use agent_spine_demo::{Demo, SCRIPT, said};
use bundle::{Policies, Settings};
use clap::Parser;
use llm::Route;
use sandbox::Mode;
use session::TurnReason;
use tokio::signal::unix::{SignalKind, signal};
use user_approval::Policy;

const FAILED: u8 = 1;
const UNUSABLE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Does a task in the current directory and prints the answer.
#[derive(Parser)]
struct Args {
    /// Who does it, as in `openai/gpt-5-mini`.
    #[arg(long, default_value = SCRIPT)]
    model: Route,
    /// What it may do: `read-only`, `workspace-write`, or `danger-full-access`.
    #[arg(long, default_value_t = Mode::ReadOnly)]
    sandbox: Mode,
    /// The directory to work in.
    #[arg(long, default_value = ".")]
    directory: PathBuf,
    /// The task; `help` tells what `offline/script` understands.
    #[arg(required = true)]
    prompt: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let status = run(Args::parse()).await.unwrap_or_else(|error| {
        eprintln!("cli-demo: {error:#}");
        UNUSABLE
    });
    ExitCode::from(status)
}

async fn run(args: Args) -> anyhow::Result<u8> {
    let home = tempfile::tempdir()?;
    // Nobody is there to be asked.
    let policies = Policies { sandbox: args.sandbox, approval: Policy::Never, ..Policies::default() };
    let models = llm_genai::Config::from_lookup(|name| std::env::var(name).ok());
    let demo =
        Demo::start("cli-demo", bundle::full(Settings { policies, models, ..Settings::new(home.path()) })).await?;
    let asked = match demo.agent(&args.directory, &args.model).await {
        Ok(agent) => ask(&agent, args.prompt.join(" ")).await,
        Err(error) => Err(error.into()),
    };
    demo.close().await?;
    asked
}

/// Runs a prompt to its end, or until it is interrupted.
async fn ask(agent: &Agent, prompt: String) -> anyhow::Result<u8> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let asked = agent.followup(prompt)?;
    let interrupted = async {
        interrupt.recv().await;
        agent.dispose_because("interrupted").await
    };
    let outcome = tokio::select! {
        biased;
        outcome = asked.outcome() => outcome,
        disposed = interrupted => return Ok(disposed.map(|()| INTERRUPTED)?),
    };
    println!("{}", said(&outcome));
    let (status, why) = match &outcome.reason {
        TurnReason::Completed => return Ok(0),
        TurnReason::Error { message } | TurnReason::Blocked { message } => (FAILED, message.as_deref()),
        TurnReason::MaxTokens => (FAILED, Some("the token limit cut the reply")),
        TurnReason::Aborted { cause } => (INTERRUPTED, cause.as_deref()),
        TurnReason::Interrupted => (INTERRUPTED, None),
    };
    eprintln!("cli-demo: {}", why.unwrap_or("the task was not done"));
    Ok(status)
}
