//! The tool itself.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sandbox::one_line;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;
use shell::{Line, Shell};
use tools::{Call, Tool, ToolOutput, TypedTool, code};
use user_approval::Escalation;
use user_approval::escalation::{Asks, Justification, SandboxPermissions};

use crate::background::{Background, Place};
use crate::text;

/// After so long a command is killed, in milliseconds, unless its call says otherwise.
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// The longest that a call may give a command, in milliseconds.
pub const MAX_TIMEOUT_MS: u64 = 600_000;

/// How much of the output is shown while the command runs, in bytes.
const PROGRESS_LIMIT: usize = 64 * 1024;

/// How much of a wrong argument is repeated, in characters.
const ASKED_SHOWN: usize = 40;

/// For a command in the background that no call gave an end: longer than any owner lives.
const UNTIL_IT_ENDS: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// The tool, with a background where there is one.
pub(crate) fn tool(escalation: Escalation, background: Option<Background>) -> Arc<dyn Tool> {
    escalation.offering(match background {
        Some(_) => tools::typed(Bash::<Offered> { escalation, background, args: PhantomData }),
        None => tools::typed(Bash::<NotOffered> { escalation, background, args: PhantomData }),
    })
}

struct Bash<B> {
    escalation: Escalation,
    background: Option<Background>,
    args: PhantomData<fn() -> B>,
}

/// Whether the schema shows the background.
trait Shows: Send + Sync + 'static {
    fn show(schema: &mut Schema);
}

struct Offered;

struct NotOffered;

impl Shows for Offered {
    fn show(_: &mut Schema) {}
}

impl Shows for NotOffered {
    fn show(schema: &mut Schema) {
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("run_in_background");
        }
    }
}

// A doc comment on it would be a part of the schema, and so of every request.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "")]
#[schemars(bound = "B: Shows", rename = "Args", transform = B::show)]
struct Args<B> {
    /// A command line, or a script.
    command: String,
    /// The directory to begin in: absolute, or relative to the workspace root, which it is if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    cwd: Option<String>,
    /// Kill it after so long; 120000 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64", range(min = 1, max = 600_000))]
    timeout_ms: Option<Value>,
    /// Answer with a job id at once; its end is told to you later. It is killed when you end, or after `timeout_ms` if given.
    #[serde(default)]
    run_in_background: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SandboxPermissions")]
    sandbox_permissions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Justification")]
    justification: Option<String>,
    #[serde(skip)]
    shows: PhantomData<fn() -> B>,
}

#[async_trait]
impl<B: Shows> TypedTool for Bash<B> {
    type Args = Args<B>;

    fn name(&self) -> &str {
        "bash"
    }

    fn description(&self) -> Cow<'_, str> {
        "Runs a command line in bash and answers with its exit status and its output. Each call begins anew: `cd` and \
         variables do not carry over. It reads nothing, and nobody is at its terminal. Of long output the head and the \
         tail are shown; all of it is in a file that `read` finds. What is temporary goes to `$TMPDIR`."
            .into()
    }

    /// The whole tree is killed first, and what it said so far is still told.
    fn cancel_grace(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn run(&self, args: Args<B>, call: &Call) -> ToolOutput {
        self.bash(args, call).await.unwrap_or_else(|output| output)
    }
}

impl<B> Bash<B> {
    async fn bash(&self, args: Args<B>, call: &Call) -> Result<ToolOutput, ToolOutput> {
        let no_shell = || ToolOutput::error(code::FAILED, "there are no commands here: no shell is composed");
        let shell = call.ctx.get::<dyn Shell>().ok_or_else(no_shell)?;
        if args.run_in_background && self.background.is_none() {
            let text = "`run_in_background` is no argument here, since there are no jobs: leave it out";
            return Err(ToolOutput::error(code::INVALID_ARGUMENTS, text));
        }
        let background = self.background.as_ref().filter(|_| args.run_in_background);
        let timeout = timeout(args.timeout_ms.as_ref(), background.is_some())?;
        let line = Line { command: args.command, cwd: args.cwd, timeout };
        let begins = shell.check(&line).map_err(text::refused)?;
        // Before anybody is asked: nobody decides on what then cannot stay.
        let place = background.map(|background| background.place(&line, call)).transpose()?;
        let asks = Asks {
            sandbox_permissions: args.sandbox_permissions.as_deref(),
            justification: args.justification.as_deref(),
        };
        let operation = operation(&line, &begins, place.as_ref());
        let grant = self.escalation.granted(call, asks, shell.mode(), async { Ok(operation) }).await?;
        if grant.is_some() && shell.check(&line).map_err(text::refused)? != begins {
            let text = "`cwd` leads elsewhere since it was asked about, and nothing was run";
            return Err(ToolOutput::error(code::FAILED, text));
        }
        if let Some(place) = place {
            return place.start(shell, line, grant);
        }
        let mut left = PROGRESS_LIMIT;
        let mut each = |piece: &str| show(call, piece, &mut left);
        let ran = shell.run(line, grant.as_ref(), &call.cancelled, &mut each).await;
        ran.map(|ran| text::answer(&ran, timeout)).map_err(text::refused)
    }
}

/// What a person decides on.
fn operation(line: &Line, begins: &Path, place: Option<&Place>) -> String {
    let background = if place.is_some() { "the background of " } else { "" };
    let begins = begins.to_string_lossy();
    format!("run in {background}{}: {}", one_line(&begins), one_line(&line.command))
}

fn timeout(asked: Option<&Value>, in_background: bool) -> Result<Duration, ToolOutput> {
    let Some(asked) = asked else {
        return Ok(if in_background { UNTIL_IT_ENDS } else { Duration::from_millis(DEFAULT_TIMEOUT_MS) });
    };
    match asked.as_u64() {
        Some(ms @ 1..=MAX_TIMEOUT_MS) => Ok(Duration::from_millis(ms)),
        Some(_) | None => {
            let shown: String = asked.to_string().chars().take(ASKED_SHOWN).collect();
            let text =
                format!("`timeout_ms` is {shown}; it may be a whole number of milliseconds, 1 to {MAX_TIMEOUT_MS}");
            Err(ToolOutput::error(code::INVALID_ARGUMENTS, text))
        }
    }
}

/// Shows a piece of output while the command runs, as long as that is not too much.
fn show(call: &Call, piece: &str, left: &mut usize) {
    if *left == 0 || piece.is_empty() {
        return;
    }
    let shown = &piece[..piece.floor_char_boundary(*left)];
    call.progress(shown);
    *left = left.saturating_sub(piece.len());
    if *left == 0 {
        call.progress("\n[… no more is shown while it runs]\n");
    }
}
