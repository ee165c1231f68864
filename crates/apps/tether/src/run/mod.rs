//! `tether run`: one task to its end.

mod answer;
mod json;
mod moving;
mod open;
mod progress;
mod tally;
mod wait;
mod watch;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agent::TurnOutcome;
use anyhow::{Context as _, anyhow};
use app_boot::{Config, Stop, Stops};
use bundle::{Helper, Settings};
use context::Scope;
use sandbox::one_line;
use session::{SessionId, TurnReason};
use subagent::{BudgetReached, BudgetSpent, StopReason};

use crate::cli::Run;
use crate::config::root;
use crate::exit::{Exit, Failure, tell};
use json::JsonLines;
use open::OpenedSession;
use progress::Progress;
use tally::Tally;
use wait::{Waited, status, wait};
use watch::{Summary, View, Watch};

/// The longest task that is read from standard input, in bytes.
const PROMPT_LIMIT: u64 = 16 * 1024 * 1024;

pub(crate) fn run(task: Run, home: Option<PathBuf>, helper: Helper) -> Result<Exit, Failure> {
    let boot = task.configuring.boot(home)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::failed)?;
    let root = match task.resume {
        Some(id) => runtime.block_on(open::root_of(id, &task, &boot.places))?,
        None => root(task.configuring.cwd.as_deref())?,
    };
    let config = task.configuring.configure(&boot, &root).map_err(Failure::usage)?;
    let prompt = prompt(task.prompt.as_deref())?;
    let settings = Settings { helper: Some(helper), ..Settings::configured(&boot, &config) };
    let exit = runtime.block_on(run_task(&task, &config, settings, &root, &prompt));
    // A terminal that is still being read would hold up the end.
    runtime.shutdown_background();
    exit
}

async fn run_task(task: &Run, config: &Config, settings: Settings, root: &Path, prompt: &str) -> Result<Exit, Failure> {
    let stops = Stops::listen(Exit::Interrupted.code().into()).map_err(Failure::failed)?;
    let plugins = bundle::full(settings.clone());
    let app = match unless_stopped(&stops, app_boot::start("tether", plugins, config)).await {
        Ok(started) => started.map_err(Failure::usage)?,
        Err(stop) => return stop_early(&stops, stop),
    };
    if let Some(note) = app_boot::denied_in_vain(app.realm(), config) {
        tell(one_line(&note));
    }
    let ran = run_in(&app, task, config, &settings, root, prompt, stops).await;
    match (ran, app.close().await) {
        (Ok(Exit::Done), Err(error)) => Err(Failure::failed(error)),
        (ran, _) => ran,
    }
}

async fn run_in(
    app: &Scope,
    task: &Run,
    config: &Config,
    settings: &Settings,
    root: &Path,
    prompt: &str,
    stops: Stops,
) -> Result<Exit, Failure> {
    let tally = Arc::new(Tally::default());
    let view: Arc<dyn View> = if task.json { Arc::new(JsonLines::new()) } else { Arc::new(Progress::new()) };
    let _watching = Watch::start(app, view.clone(), tally.clone());
    let spent = Arc::new(OnceLock::new());
    let note = spent.clone();
    let _budget = app.realm().on(move |reached: &BudgetReached| {
        // The first is what stopped it.
        let _ = note.set(reached.spent);
    });
    let opened = match unless_stopped(&stops, open::session(app, task, config, settings, root)).await {
        Ok(opened) => opened?,
        Err(stop) => return stop_early(&stops, stop),
    };
    for repair in &opened.repairs {
        tell(repair);
    }
    view.opened(opened.session.header(), &opened.profile.route.to_string(), opened.mode);
    let id = opened.session.id();
    if !task.json {
        answer::answer_on_terminal(app, id);
    }
    let Waited { outcome, stop, closed } = match work(app, task, opened, prompt, &stops).await {
        Ok(Ok(waited)) => waited,
        Ok(Err(stop)) => {
            let exit = stop_early(&stops, stop)?;
            end_early(app, &*view, id, StopReason::Aborted, &tally).await?;
            return Ok(exit);
        }
        Err(failure) => {
            end_early(app, &*view, id, StopReason::Error, &tally).await?;
            return Err(failure);
        }
    };
    // A turn that failed has said why already.
    if let (Err(error), false) = (&closed, matches!(outcome.reason, TurnReason::Error { .. })) {
        tell(error);
    }
    let summary = summary(id, &outcome, &tally);
    let shown = view.finished(&summary);
    if !task.json {
        print_answer(&outcome)?;
    }
    let spent = spent.get().filter(|_| matches!(outcome.reason, TurnReason::Aborted { .. }));
    if let Some(why) = reason(&outcome, stop, spent) {
        tell(one_line(&why));
    }
    shown.context("what happened could not be printed").map_err(Failure::failed)?;
    Ok(match (stop, spent, &outcome.reason) {
        (Some(stop), ..) => status(stop),
        (None, Some(_), _) => Exit::Limit,
        (None, None, TurnReason::Completed) if closed.is_ok() => Exit::Done,
        (None, None, _) => Exit::Failed,
    })
}

/// The task itself, unless it is stopped before it begins.
async fn work(
    app: &Scope,
    task: &Run,
    opened: OpenedSession,
    prompt: &str,
    stops: &Stops,
) -> Result<Result<Waited, Stop>, Failure> {
    let (agent, receipt) = match unless_stopped(stops, open::agent(app, opened, prompt)).await {
        Ok(begun) => begun?,
        Err(stop) => return Ok(Err(stop)),
    };
    let stops = stops.clone().give(task.timeout.map(Duration::from_secs));
    wait(app, &stops, &agent, receipt).await.map(Ok).map_err(Failure::failed)
}

/// Does what comes before a task, however slow it is, unless it is stopped: then it is given up.
async fn unless_stopped<T>(stops: &Stops, work: impl Future<Output = T>) -> Result<T, Stop> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        stop = stops.stopped() => Err(stop),
    }
}

fn stop_early(stops: &Stops, stop: Stop) -> Result<Exit, Failure> {
    let exit = status(stop);
    stops.end_for_certain(exit.code().into()).map_err(Failure::failed)?;
    tell("interrupted before the task began");
    Ok(exit)
}

/// Whoever was shown a session is shown a result. What had begun ends first, while somebody still looks.
async fn end_early(
    app: &Scope,
    view: &dyn View,
    session: SessionId,
    stop_reason: StopReason,
    tally: &Tally,
) -> Result<(), Failure> {
    // Whoever started the app closes it too, and tells what failed.
    let _ = app.close().await;
    let (usage, denials) = tally.totals();
    let shown = view.finished(&Summary { session, stop_reason, output: String::new(), usage, denials });
    shown.context("what happened could not be printed").map_err(Failure::failed)
}

fn summary(session: SessionId, outcome: &TurnOutcome, tally: &Tally) -> Summary {
    let (usage, denials) = tally.totals();
    let output = outcome.output.as_ref().map_or_else(String::new, |message| message.text());
    Summary { session, stop_reason: StopReason::from(&outcome.reason), output, usage, denials }
}

fn reason(outcome: &TurnOutcome, stop: Option<Stop>, spent: Option<&BudgetSpent>) -> Option<String> {
    if let (None, Some(spent)) = (stop, spent) {
        return Some(format!("stopped: {spent}"));
    }
    Some(match (stop, &outcome.reason) {
        (Some(Stop::TimedOut), _) => "stopped: the time given with --timeout is over".to_owned(),
        (Some(Stop::Interrupted | Stop::Terminated), _) => "interrupted; the session is saved".to_owned(),
        (None, TurnReason::Completed) => return None,
        (None, TurnReason::MaxTokens) => "the reply was cut by the token limit".to_owned(),
        (None, TurnReason::Blocked { message }) => {
            format!("refused: {}", message.as_deref().unwrap_or("no reason given"))
        }
        (None, TurnReason::Error { message }) => {
            format!("the task failed: {}", message.as_deref().unwrap_or("no reason given"))
        }
        (None, TurnReason::Aborted { cause }) => format!("aborted: {}", cause.as_deref().unwrap_or("no reason given")),
        (None, TurnReason::Interrupted) => "interrupted".to_owned(),
    })
}

/// The final answer; a closed standard output is nobody to print for.
fn print_answer(outcome: &TurnOutcome) -> Result<(), Failure> {
    let Some(message) = &outcome.output else { return Ok(()) };
    let mut stdout = std::io::stdout().lock();
    let text = match stdout.is_terminal() {
        true => harmless(&message.text()),
        false => message.text(),
    };
    let printed =
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
    match printed {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(anyhow!(error).context("the answer could not be printed")))
        }
        _ => Ok(()),
    }
}

/// A text whose lines move no cursor, for a terminal: a model wrote it.
fn harmless(text: &str) -> String {
    text.lines().map(|line| one_line(&line.replace('\t', "    ")).to_string()).collect::<Vec<_>>().join("\n")
}

fn prompt(given: Option<&str>) -> Result<String, Failure> {
    let text = match given {
        Some(text) => text.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::usage(anyhow!("no task: give it as an argument or on standard input")));
        }
        None => {
            let mut text = String::new();
            let read = std::io::stdin().lock().take(PROMPT_LIMIT + 1).read_to_string(&mut text);
            read.context("the task on standard input could not be read").map_err(Failure::usage)?;
            text
        }
    };
    if text.len() as u64 > PROMPT_LIMIT {
        return Err(Failure::usage(anyhow!("the task has more than {PROMPT_LIMIT} bytes")));
    }
    if text.trim().is_empty() {
        return Err(Failure::usage(anyhow!("the task is empty")));
    }
    Ok(text)
}
