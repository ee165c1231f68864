//! `tether sandbox`: any command under a mode, outside of any session.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use app_boot::{Boot, Config, Flags, Stops, Tmp};
use bundle::{Helper, Settings};
use context::{Ctx, Scope};
use fs_sandbox::Fence;
use rustix::fs::FileType;
use sandbox::{Boundary, CannotConfine, CommandLine, Confinement, Mode, Network, SandboxProvider as _, Temp, one_line};
use sandbox_linux::LinuxSandbox;
use scratch::{Apart, Scratch};
use subprocess::{Environment, How, Process, Spawn, Streams};

use crate::cli::Sandboxed;
use crate::config::root;
use crate::exit::{Exit, Failure, tell};

/// What to do where there is no temporary directory.
pub(crate) const OTHER_TEMP: &str = "make it one that you may write, or name another in $TMPDIR";

/// It was not confined, and so not run.
const NOT_CONFINED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// `tether sandbox`.
pub(crate) fn sandboxed(asked: &Sandboxed, home: Option<PathBuf>, helper: &Helper) -> Result<ExitCode, Failure> {
    let boot = Boot::of_process(home, None).map_err(Failure::usage)?;
    let root = root(asked.cwd.as_deref())?;
    let config = match boot.configure(&root, Flags::default()) {
        Ok(config) => config,
        Err(errors) => {
            errors.iter().for_each(|error| tell(Failure::usage(error.clone())));
            return Ok(Exit::Usage.into());
        }
    };
    refuse_directories()?;
    if asked.command.first().is_some_and(|program| program.is_empty()) {
        return Err(Failure::usage(anyhow!("the command behind `--` has an empty name")));
    }
    let stops = Stops::listen(Exit::Interrupted.code().into()).map_err(Failure::failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::failed)?;
    runtime.block_on(async {
        let app = Scope::root("sandbox");
        let ended = run(asked, &boot, &config, &root, &app, &stops, helper).await;
        // The tree is gone before its temporary directory is.
        app.close().await.map_err(|error| Failure::failed(anyhow!("{error}")))?;
        ended
    })
}

async fn run(
    asked: &Sandboxed,
    boot: &Boot,
    config: &Config,
    root: &Path,
    app: &Scope,
    stops: &Stops,
    helper: &Helper,
) -> Result<ExitCode, Failure> {
    let mode = asked.sandbox.unwrap_or(config.sandbox.value);
    if mode == Mode::DangerFullAccess && asked.network == Some(Network::Denied) {
        return Err(Failure::usage(anyhow!("`--network denied` needs a mode that confines: {mode} holds nothing")));
    }
    let own = match config.tmp.value {
        Tmp::Private => match Scratch::make_apart(app, Some(&Apart(root.to_owned()))) {
            Ok(scratch) => Some(scratch),
            Err(error) => {
                let place = std::env::temp_dir();
                let place = one_line(&place.to_string_lossy()).to_string();
                tell(format!("no temporary directory can be made in {place}: {error}; {OTHER_TEMP}"));
                return Ok(ExitCode::from(NOT_CONFINED));
            }
        },
        Tmp::Shared => None,
    };
    let temp = own.as_ref().map_or_else(std::env::temp_dir, Scratch::tmp);
    let workspace = Settings::configured(boot, config).fence().workspace(root).temp(&temp);
    // As the file tools have it: canonical, and with what git leads to at this moment.
    let fence = Fence::open(workspace, Arc::new(mode), Ctx::clone(app)).map_err(Failure::failed)?;
    let boundary = fence.workspace().boundary(mode);
    let temp = fence.workspace().temp_dir().map_or(temp, Path::to_owned);
    let network = asked.network.unwrap_or(match boundary.is_confined() {
        true => config.network.value,
        false => boundary.network(),
    });
    if let Some(why) = boundary.withheld() {
        tell(format!("the command was not run: what is protected in the workspace cannot be told: {}", one_line(why)));
        return Ok(ExitCode::from(NOT_CONFINED));
    }
    let temp = if own.is_some() { Temp::Private(temp) } else { Temp::Shared(temp) };
    let spawn = match spawn(asked, boundary, network, temp, root, helper) {
        Ok((spawn, shortfall)) => {
            shortfall.into_iter().for_each(tell);
            spawn
        }
        Err(cannot) => {
            tell(cannot);
            return Ok(ExitCode::from(NOT_CONFINED));
        }
    };
    let mut process =
        Process::spawn(app, spawn).context("the command could not be started").map_err(Failure::failed)?;
    let ended = tokio::select! {
        ended = process.wait() => ended,
        _ = stops.stopped() => {
            process.kill();
            process.wait().await;
            return Ok(Exit::Interrupted.into());
        }
    };
    ended.notes.iter().for_each(|note| tell(one_line(note)));
    Ok(match ended.how {
        How::Exited(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        How::Signaled(signal) => ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
        How::NotFound { program, why } => {
            let is_there = Path::new(&program).exists();
            let why = match program.contains('/') {
                true => why,
                false => format!("{why}; it is looked for along $PATH, and what only a shell knows runs with `sh -c`"),
            };
            tell(format!("`{}` cannot be run: {why}", one_line(&program)));
            ExitCode::from(if is_there { NOT_EXECUTABLE } else { NOT_FOUND })
        }
        How::SetUpFailed { stage, why } => {
            tell(format!(
                "the sandbox could not be set up, and the command was not run: {}: {}",
                one_line(&stage),
                one_line(&why)
            ));
            ExitCode::from(NOT_CONFINED)
        }
        How::Killed => Exit::Interrupted.into(),
        How::HelperDied { status } => {
            tell(format!("the process that held the command has died, and the command with it: {}", one_line(&status)));
            ExitCode::from(NOT_CONFINED)
        }
    })
}

/// A directory that a command is handed open leads past what it is confined to.
fn refuse_directories() -> Result<(), Failure> {
    let (stdin, stdout, stderr) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    for (name, stream) in [("input", stdin.as_fd()), ("output", stdout.as_fd()), ("error", stderr.as_fd())] {
        let found = rustix::fs::fstat(stream).map(|found| FileType::from_raw_mode(found.st_mode));
        if found == Ok(FileType::Directory) {
            return Err(Failure::usage(anyhow!("standard {name} is a directory, which no command is given")));
        }
    }
    Ok(())
}

/// How the command is started: through the helper that confines it, or the one that only holds its processes together. And what is
/// to be said of it, where it is held in part.
fn spawn(
    asked: &Sandboxed,
    boundary: Boundary,
    network: Network,
    temp: Temp,
    cwd: &Path,
    helper: &Helper,
) -> Result<(Spawn, Option<String>), CannotConfine> {
    let env = Environment::inherited();
    let (program, args, plan, env, shortfall) = if boundary.is_confined() {
        let confinement = Confinement { boundary, network, temp };
        let sandbox = LinuxSandbox::with_helper(helper.path());
        let launch = sandbox.confine(&CommandLine { argv: &asked.command, cwd }, &confinement)?;
        let shortfall = sandbox.enforcement().shortfall();
        (launch.program, launch.args, launch.plan, env.with("TMPDIR", launch.temp), shortfall)
    } else {
        let (program, args, plan) = subprocess::guard(&helper.path(), &asked.command, cwd);
        (program, args, plan, env, None)
    };
    Ok((Spawn { program, args, plan, cwd: cwd.to_owned(), env, streams: Streams::Inherited }, shortfall))
}
