//! Every word that a model reads about a command that was run, and what front doors are told.

use std::fmt::Write as _;
use std::time::Duration;

use jobs::JobId;
use sandbox::{Enforcement, Mode, one_line};
use serde::Serialize;
use shell::{Ran, ShellError};
use subprocess::{Finished, How};
use tools::{ToolOutput, code};

/// What came of a command, for front doors: the meta of its result. One that was denied has the denial there instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRan {
    /// What it ended with, if it ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that it was ended by, if by one that was not ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether its time was over.
    pub timed_out: bool,
    /// Whether its turn was cancelled.
    pub cancelled: bool,
    /// How many bytes it put out.
    pub bytes: u64,
    /// Where all of them are, if they are not all shown: absolute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<String>,
    /// The mode that it ran under.
    pub mode: Mode,
    /// How much of that was held.
    pub held: Held,
}

/// How much of a mode was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Held {
    /// All of it.
    Full,
    /// Most of it.
    Partial,
    /// There was nothing to hold.
    Nothing,
}

/// A command that runs in the background, for front doors: the meta of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandStarted {
    /// The job, such as `job-1`.
    pub job: String,
}

/// What a command answers that was run to its end.
pub(crate) fn answer(ran: &Ran, timeout: Duration) -> ToolOutput {
    let finished = &ran.finished;
    let mut text = verdict(ran, timeout);
    match finished.output.text.trim_end() {
        "" => text.push_str("\n(no output)"),
        output => text.extend(["\n", output]),
    }
    notes(ran, &mut text);
    if let Some(denial) = &ran.denial {
        return ToolOutput::error(code::SANDBOX_DENIED, text).with_meta(denial);
    }
    let output = match () {
        () if finished.cancelled => ToolOutput::error(code::CANCELLED, text),
        () if is_good(ran) => ToolOutput::text(text),
        () => ToolOutput::error(code::FAILED, text),
    };
    output.with_meta(&meta(ran))
}

/// What a job says at its end, when all of its output is told already.
pub(crate) fn last_word(ran: &Ran, timeout: Duration) -> String {
    let mut text = verdict(ran, timeout);
    if let Some(spilled) = &ran.finished.output.spilled {
        let _ = write!(text, "\n[its output is kept in {}]", one_line(&spilled.to_string_lossy()));
    }
    notes(ran, &mut text);
    text
}

pub(crate) fn started(job: JobId, granted: Option<Mode>) -> ToolOutput {
    let under = granted.map(|mode| format!(" under {mode}")).unwrap_or_default();
    let text = format!("{job}: the command runs in the background{under}. You are told when it ends.");
    ToolOutput::text(text).with_meta(&CommandStarted { job: job.to_string() })
}

/// What a call answers of which nothing was run.
pub(crate) fn refused(error: ShellError) -> ToolOutput {
    let text = error.to_string();
    match error {
        ShellError::Denied(denial) => ToolOutput::error(code::SANDBOX_DENIED, text).with_meta(&denial),
        ShellError::Invalid(_) => ToolOutput::error(code::INVALID_ARGUMENTS, text),
        ShellError::NotEnforceable(_)
        | ShellError::Withheld(_)
        | ShellError::SandboxFailed { .. }
        | ShellError::NotStarted { .. }
        | ShellError::Spawn(_)
        | ShellError::Closing => ToolOutput::error(code::FAILED, text),
    }
}

/// Whether the command did what it was to do, by its own account.
pub(crate) fn is_good(ran: &Ran) -> bool {
    let Finished { how, timed_out, cancelled, .. } = &ran.finished;
    *how == How::Exited(0) && !timed_out && !cancelled && ran.denial.is_none()
}

/// The first lines: a denial comes before everything else.
fn verdict(ran: &Ran, timeout: Duration) -> String {
    let ended = ended(&ran.finished, timeout);
    match &ran.denial {
        Some(denial) => format!("{denial}\n{ended}"),
        None => ended,
    }
}

fn ended(finished: &Finished, timeout: Duration) -> String {
    if finished.timed_out {
        return format!("timed out after {} ms: it was killed, with all that it started", timeout.as_millis());
    }
    if finished.cancelled {
        return "cancelled: it was killed, with all that it started".to_owned();
    }
    match &finished.how {
        How::Exited(code) => format!("exit status {code}"),
        How::Signaled(signal) => format!("killed by signal {signal}{}", name(*signal)),
        How::Killed => "killed, with all that it started".to_owned(),
        How::NotFound { program, why } => format!("not started: {}: {}", one_line(program), one_line(why)),
        How::SetUpFailed { stage, why } => format!("not started: {stage}: {}", one_line(why)),
        How::HelperDied { status } => {
            format!("what held the command died ({}); it may have run in part", one_line(status))
        }
    }
}

fn notes(ran: &Ran, text: &mut String) {
    let shortfall = ran.enforcement.as_ref().and_then(Enforcement::shortfall);
    for note in ran.finished.notes.iter().chain(&shortfall) {
        let _ = write!(text, "\n[{}]", one_line(note));
    }
}

fn meta(ran: &Ran) -> CommandRan {
    let Finished { how, timed_out, cancelled, output, .. } = &ran.finished;
    let (exit_code, signal) = match how {
        How::Exited(code) => (Some(*code), None),
        How::Signaled(signal) => (None, Some(*signal)),
        How::Killed | How::NotFound { .. } | How::SetUpFailed { .. } | How::HelperDied { .. } => (None, None),
    };
    CommandRan {
        exit_code,
        signal,
        timed_out: *timed_out,
        cancelled: *cancelled,
        bytes: output.bytes,
        spilled: output.spilled.as_ref().map(|path| path.to_string_lossy().into_owned()),
        mode: ran.mode,
        held: match &ran.enforcement {
            Some(Enforcement::Full) => Held::Full,
            Some(Enforcement::Partial(_)) => Held::Partial,
            Some(Enforcement::None(_)) | None => Held::Nothing,
        },
    }
}

/// What people call a signal.
fn name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}
