//! The words on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use app_boot::parse_whole;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand};
use llm::Route;
use sandbox::{Mode, Network, one_line};
use session::SessionId;
use user_approval::Policy;

/// An agent harness: runs language models with tools, and holds every child to its parent's scope.
#[derive(Debug, Parser)]
#[command(name = "tether", version, propagate_version = true, disable_help_subcommand = true, after_help = EXAMPLE)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Where sessions and settings are kept, instead of $TETHER_HOME.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,

    /// Tell more about what is going on; twice for everything.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one task to its end and print the final answer.
    #[command(after_help = RUN_EXAMPLE)]
    Run(Run),
    /// Serve the Agent Client Protocol on standard input and output, for editors.
    #[command(after_help = ACP_EXAMPLE)]
    Acp {
        #[command(flatten)]
        configuring: Configuring,
        #[command(flatten)]
        switching: Switching,
    },
    /// Read session logs.
    #[command(subcommand, after_help = SESSIONS_EXAMPLE)]
    Sessions(Sessions),
    /// Tell what a session may do, and prove it from the logs.
    #[command(subcommand, after_help = POLICY_EXAMPLE)]
    Policy(PolicyCommand),
    /// Tell what is configured, and by whom.
    #[command(subcommand, after_help = CONFIG_EXAMPLE)]
    Config(ConfigCommand),
    /// Tell what this machine can enforce, which models can be asked, and what would be refused.
    #[command(after_help = DOCTOR_EXAMPLE)]
    Doctor {
        #[command(flatten)]
        configuring: Configuring,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Run a command under a sandbox mode, outside of any session.
    #[command(after_help = SANDBOX_EXAMPLE)]
    Sandbox(Sandboxed),
}

/// A command under a mode.
#[derive(Debug, Args)]
pub(crate) struct Sandboxed {
    /// The mode, instead of the configured default: read-only, workspace-write or danger-full-access.
    #[arg(long, value_name = "MODE", value_parser = |text: &str| text.parse::<Mode>())]
    pub(crate) sandbox: Option<Mode>,

    /// What it may do on the network, instead of what is configured: allowed or denied.
    #[arg(long, value_name = "ACCESS", value_parser = |text: &str| text.parse::<Network>())]
    pub(crate) network: Option<Network>,

    /// The workspace root, in which it runs, instead of the current directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// The command and its arguments, behind `--`.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// One task.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The task; read from standard input if it is not given.
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) configuring: Configuring,

    #[command(flatten)]
    pub(crate) switching: Switching,

    /// Continue a top-level session. The budgets of its tree of agents begin again.
    #[arg(long, value_name = "ID", value_parser = |text: &str| text.parse::<SessionId>())]
    pub(crate) resume: Option<SessionId>,

    /// Stop the task after this many seconds.
    #[arg(long, value_name = "SECS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) timeout: Option<u64>,

    /// Print JSON lines on standard output and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a session is switched to.
#[derive(Debug, Default, Args)]
pub(crate) struct Switching {
    /// Switch the session to a permission preset: read-only, workspace-write, danger-full-access, or a configured one.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sandbox", "approval"])]
    pub(crate) preset: Option<String>,

    /// Switch the session to a sandbox mode: read-only, workspace-write or danger-full-access.
    #[arg(long, value_name = "MODE", value_parser = |text: &str| text.parse::<Mode>())]
    pub(crate) sandbox: Option<Mode>,

    /// Switch the session to an approval policy: ask or never.
    #[arg(long, value_name = "POLICY", value_parser = app_boot::parse_approval)]
    pub(crate) approval: Option<Policy>,
}

/// What goes over every file and variable.
#[derive(Debug, Args)]
pub(crate) struct Configuring {
    /// The workspace root, instead of the current directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// The model, as provider/model.
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = |text: &str| text.parse::<Route>())]
    pub(crate) model: Option<Route>,

    /// How deep children may delegate; 0 forbids delegation.
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_whole(text, 0_u32), allow_negative_numbers = true)]
    pub(crate) max_depth: Option<u32>,

    /// How many children may be alive at once, in the whole tree of agents.
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_whole(text, 0_u64), allow_negative_numbers = true)]
    pub(crate) max_children: Option<u64>,

    /// How many tokens the whole tree of agents may use; counted anew with each --resume.
    #[arg(long, value_name = "N", value_parser = |text: &str| parse_whole(text, 1_u64), allow_negative_numbers = true)]
    pub(crate) budget_tokens: Option<u64>,

    /// Read keys and base URLs from this file, where the environment does not have them.
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
}

/// What is configured.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every value and where it came from. Keys are never printed, only whether and where they are set.
    #[command(after_help = SHOW_EXAMPLE)]
    Show {
        #[command(flatten)]
        configuring: Configuring,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
}

/// Reading session logs. None of it writes, repairs or gets in a writer's way.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List the sessions that are kept.
    #[command(after_help = LIST_EXAMPLE)]
    List {
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Print a session's transcript.
    #[command(after_help = TRANSCRIPT_EXAMPLE)]
    Show {
        /// The session.
        #[arg(value_parser = |text: &str| text.parse::<SessionId>())]
        id: SessionId,
        /// Print the events as JSON lines.
        #[arg(long)]
        json: bool,
    },
    /// Print the delegation tree below a session.
    #[command(after_help = TREE_EXAMPLE)]
    Tree {
        /// The session at its root.
        #[arg(value_parser = |text: &str| text.parse::<SessionId>())]
        id: SessionId,
        /// Print a JSON line a session.
        #[arg(long)]
        json: bool,
    },
}

/// What a session may do.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Print the effective mode and approval policy, and which events decided them, up to the root.
    #[command(after_help = EXPLAIN_EXAMPLE)]
    Explain {
        /// The session.
        #[arg(value_parser = |text: &str| text.parse::<SessionId>())]
        id: SessionId,
        /// Explain every session below it too.
        #[arg(long)]
        tree: bool,
        /// Print JSON, a line a session.
        #[arg(long)]
        json: bool,
    },
    /// Check that every child was held to its parent's scope; the exit status is 1 if one was not.
    #[command(after_help = AUDIT_EXAMPLE)]
    Audit {
        /// The session, which is checked against its parent, with everything below it. Without one, every session.
        #[arg(value_parser = |text: &str| text.parse::<SessionId>())]
        id: Option<SessionId>,
        /// Print JSON lines.
        #[arg(long)]
        json: bool,
    },
}

const EXAMPLE: &str = "Example:
  tether run --sandbox workspace-write 'write hello.txt \"hello\"; say done'";

const RUN_EXAMPLE: &str = "Examples:
  tether run --sandbox workspace-write 'spawn A { write a.txt \"hello\" } & spawn B { write ../x \"out\" }'
  OPENAI_API_KEY=… tether run --model openai/gpt-5 --sandbox read-only 'What does this project do?'
  echo 'list' | tether run --json

Exit status: 0 the task completed · 1 it failed, was refused or hit the token limit · 2 usage or configuration ·
3 stopped by a limit · 130 interrupted";

const ACP_EXAMPLE: &str = "Examples:
  tether acp
  tether acp --preset workspace-write --model openai/gpt-5

An editor starts it and speaks to it. Each session has the working directory that the editor names for it; --preset,
--sandbox and --approval switch the new ones. Nothing but frames goes to standard output.

Exit status: 0 the client left · 1 the connection broke · 2 usage or configuration · 130 interrupted";

const CONFIG_EXAMPLE: &str = "Example:
  tether config show";

const SHOW_EXAMPLE: &str = "Examples:
  tether config show
  tether config show --cwd ../project --json

Layers, each over the one before: defaults, the user's config.toml, the project's .tether/config.toml (which can narrow and
never widen), TETHER_… variables, flags.

With --json, a line a value: {\"key\", \"value\", \"from\", \"narrowedFrom\"?: {\"value\", \"from\"}, \"because\"?}; a line for
what a project said in vain: {\"key\", \"notTaken\", \"from\"}; and a line a variable of the models' providers: {\"variable\",
\"set\", \"from\"}.

Exit status: 0 the configuration is well-formed · 2 it is not, with a line for each error. Whether the models, providers and
tools that it names are there is found out by the start of a task";

const DOCTOR_EXAMPLE: &str = "Examples:
  tether doctor
  tether doctor --json

With --json, a line a fact: {\"topic\", \"name\", \"state\": \"good\" | \"notable\" | \"bad\", \"text\"}.

Exit status: 0 nothing is bad · 1 something would be refused that a default session needs · 2 usage or configuration";

const SANDBOX_EXAMPLE: &str = "Examples:
  tether sandbox -- ls -la
  tether sandbox --sandbox workspace-write --network allowed -- make test

Nothing but the usual variables is in its environment. Exit status: the command's own, 128 + N where signal N ended it · 2
usage or configuration · 125 it could not be confined, and was not run · 126 it cannot be executed · 127 there is no
such program";

const SESSIONS_EXAMPLE: &str = "Example:
  tether sessions tree 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01";

const LIST_EXAMPLE: &str = "Examples:
  tether sessions list
  tether sessions list --json";

const TRANSCRIPT_EXAMPLE: &str = "Examples:
  tether sessions show 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01
  tether sessions show 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01 --json";

const TREE_EXAMPLE: &str = "Examples:
  tether sessions tree 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01
  tether sessions tree 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01 --json";

const EXPLAIN_EXAMPLE: &str = "Examples:
  tether policy explain 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01
  tether policy explain 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01 --tree --json";

const POLICY_EXAMPLE: &str = "Examples:
  tether policy explain 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01
  tether policy audit";

const AUDIT_EXAMPLE: &str = "Examples:
  tether policy audit
  tether policy audit 01997f3c-6d1e-7c53-a5fa-2c4c8fbd6a01 --json

It reads logs and nothing else. Each child's log must begin with the stamp of its parent's override at the capture and its
approval pin, copy what it copied, and hold no later switch that widens it. Children in other processes have no log here.
Logs are compared with each other: somebody who rewrites all of them consistently is not found. That is out of scope.

With --json, a line a session, parents before children: {\"session\", \"parent\"?, \"findings\": [{\"code\", \"seq\"?,
\"message\"}], \"more\"?, \"unknown\"?: [{\"type\", \"seq\", \"events\"}]}, where \"more\" counts what is left out behind the
first 100 findings, and \"unknown\" are events of other programs, which are no findings. The last line is
{\"type\": \"result\", \"sessions\", \"violations\"}.

Exit status: 0 no violation · 1 violations · 2 no such session";

/// What is wrong with a command line, and the hint if there is one: without the usage, which `--help` tells better.
pub(crate) fn in_one_line(wrong: &clap::Error) -> String {
    let told = wrong.render().to_string();
    let told = told.strip_prefix("error: ").unwrap_or(&told);
    let telling = told.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let mut parts: Vec<String> =
        telling.map(|part| part.lines().map(str::trim).collect::<Vec<_>>().join(" ")).collect();
    if let Some(command) = unmarked_command(wrong, told) {
        parts.push(format!("tip: a command goes behind `--`, as in `tether sandbox -- {command}`"));
    }
    one_line(parts.join("; ").trim_end()).to_string()
}

/// What somebody may have meant as the command of `tether sandbox`.
fn unmarked_command<'a>(wrong: &'a clap::Error, told: &str) -> Option<&'a str> {
    if !told.contains("Usage: tether sandbox ") {
        return None;
    }
    match (wrong.kind(), wrong.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) if !word.starts_with('-') => Some(word),
        (ErrorKind::MissingRequiredArgument, _) => Some("ls"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], told: &str) {
        let wrong = Cli::try_parse_from([&["tether"], args].concat()).expect_err("it is wrong");
        assert_eq!(in_one_line(&wrong), told);
    }

    #[test]
    fn what_is_wrong_is_one_line_with_its_hint() {
        check(&["runn"], "unrecognized subcommand 'runn'; tip: a similar subcommand exists: 'run'");
        check(&["run", "--jsom"], "unexpected argument '--jsom' found; tip: a similar argument exists: '--json'");
        check(&["sessions", "show"], "the following required arguments were not provided: <ID>");
        let behind = |command| format!("tip: a command goes behind `--`, as in `tether sandbox -- {command}`");
        for args in [&["sandbox", "make"][..], &["sandbox", "make", "-k"]] {
            check(args, &format!("unexpected argument 'make' found; {}", behind("make")));
        }
        for args in [&["sandbox"][..], &["sandbox", "--"]] {
            check(args, &format!("the following required arguments were not provided: <CMD>...; {}", behind("ls")));
        }
        check(
            &["run", "--sandbox", "a\nb"],
            "invalid value 'a b' for '--sandbox <MODE>': no sandbox mode named `a\\nb`: use `read-only`, \
             `workspace-write` or `danger-full-access`",
        );
    }
}
