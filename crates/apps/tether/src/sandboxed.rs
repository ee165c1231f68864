//! `tether sandbox`: any command under a mode, outside of any session.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use app_boot::{Boot, Config, Flags, Stops, Tmp};
use bundle::Helper;
use context::{Ctx, Scope};
use fs_sandbox::Fence;
use sandbox::{
    Boundary, CannotConfine, CommandLine, Confinement, Network, SandboxProvider as _, Temp, Workspace, one_line,
};
use sandbox_linux::LinuxSandbox;
use subprocess::{Environment, How, Process, Spawn, Streams};

use crate::cli::Sandboxed;
use crate::config::root;
use crate::exit::{Exit, Failure, tell};

/// It was not confined, and so not run.
const NOT_CONFINED: u8 = 125;
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
    let own = match config.tmp.value {
        Tmp::Private => Some(tempfile::Builder::new().prefix("tether-").tempdir().map_err(Failure::failed)?),
        Tmp::Shared => None,
    };
    let temp = own.as_ref().map_or_else(std::env::temp_dir, |dir| dir.path().to_owned());
    let mut workspace = Workspace::new(root).temp(&temp).home(&boot.places.home);
    workspace = boot.private().into_iter().fold(workspace, Workspace::home);
    workspace = config.protected.iter().fold(workspace, |workspace, path| workspace.protect(&path.value));
    // As the file tools have it: canonical, and with what git leads to.
    let fence = Fence::open(workspace, Arc::new(mode), Ctx::clone(app)).map_err(Failure::failed)?;
    let boundary = fence.workspace().boundary(mode);
    let temp = fence.workspace().temp_dir().map_or(temp, Path::to_owned);
    let network = asked.network.unwrap_or(match boundary.is_confined() {
        true => config.network.value,
        false => boundary.network(),
    });
    let temp = if own.is_some() { Temp::Private(temp) } else { Temp::Shared(temp) };
    let spawn = match spawn(asked, boundary, network, temp, root, helper) {
        Ok(spawn) => spawn,
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
            tell(format!("{}: {why}", one_line(&program)));
            ExitCode::from(NOT_FOUND)
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

/// How the command is started: through the helper that confines it, or the one that only holds its processes together.
fn spawn(
    asked: &Sandboxed,
    boundary: Boundary,
    network: Network,
    temp: Temp,
    cwd: &Path,
    helper: &Helper,
) -> Result<Spawn, CannotConfine> {
    let env = Environment::inherited();
    let (program, args, plan, env) = if boundary.is_confined() {
        let confinement = Confinement { boundary, network, temp };
        let launch = LinuxSandbox::with_helper(helper.path())
            .confine(&CommandLine { argv: &asked.command, cwd }, &confinement)?;
        (launch.program, launch.args, launch.plan, env.with("TMPDIR", launch.temp))
    } else {
        let (program, args, plan) = subprocess::guard(&helper.path(), &asked.command, cwd);
        (program, args, plan, env)
    };
    Ok(Spawn { program, args, plan, cwd: cwd.to_owned(), env, streams: Streams::Inherited })
}
