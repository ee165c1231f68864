use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use context::Ctx;
use rustix::fs::{Access, access};
use sandbox::{
    Boundary, CannotConfine, CommandLine, Confinement, Denial, Enforcement, Grant, Launch, Mode, ModeSource, Network,
    Operation, SandboxProvider, Temp, Workspace, effective,
};
use scratch::{Apart, Scratch, places};
use subprocess::{Environment, Finished, How, Limits, Process, Spawn, SpawnError, Streams, guard, run};
use tokio_util::sync::CancellationToken;

use crate::environment::environment;
use crate::interactive::interactive;
use crate::interpreter::{interpreter, invocation};
use crate::spills::Spills;
use crate::{InvalidLine, Line, MAX_COMMAND_BYTES, OpenError, Ran, Shell, ShellError};

/// How much of a command's output is shown from its beginning, in bytes.
pub const HEAD_LIMIT: usize = 12 * 1024;

/// How much of a command's output is shown from its end, in bytes.
pub const TAIL_LIMIT: usize = 20 * 1024;

/// How much of the end of the output is looked at for what was denied, in bytes.
const EVIDENCE_LIMIT: usize = 16 * 1024;

/// Runs command lines under the mode of a session: where that confines, through the sandbox provider, and otherwise as a
/// tree that ends with its owner and is not confined.
pub struct ConfinedShell {
    ctx: Ctx,
    workspace: Workspace,
    mode: Arc<dyn ModeSource>,
    provider: Option<Arc<dyn SandboxProvider>>,
    helper: PathBuf,
    env: Environment,
    network: Option<Network>,
    temp: Temp,
    interpreter: PathBuf,
    spills: Spills,
}

/// What a [`ConfinedShell`] is made of.
pub struct Parts {
    /// Where the session works, canonical. Its temporary directory is that of commands.
    pub workspace: Workspace,
    /// What it may do there now.
    pub mode: Arc<dyn ModeSource>,
    /// Who holds commands to that. Without one, none is run under a mode that confines.
    pub provider: Option<Arc<dyn SandboxProvider>>,
    /// The executable that begins its `main` with `subprocess::helper::run_if_asked`.
    pub helper: PathBuf,
    /// What commands see of the environment, besides what they are all given.
    pub env: Environment,
    /// What confined commands may do on the network, where that is not up to the mode.
    pub network: Option<Network>,
    /// Whose temporary directory the workspace's is.
    pub temporary: Temporary,
    /// Where long output is kept, out of the reach of confined commands. One is made if there is none.
    pub scratch: Option<Arc<Scratch>>,
}

/// Whose a temporary directory is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Temporary {
    /// The session's own. A workspace without one gets one, for commands alone.
    #[default]
    Private,
    /// The machine's.
    Shared,
}

impl ConfinedShell {
    /// Opens the command line of one agent. Everything that it runs, and what it keeps of that, ends with `ctx`, the
    /// agent's scope.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(ctx: &Ctx, parts: Parts) -> Result<Self, OpenError> {
        let Parts { mut workspace, mode, provider, helper, env, network, temporary, scratch } = parts;
        let interpreter = interpreter(&env, workspace.root())?;
        let scratch = match scratch {
            Some(scratch) => scratch,
            None => {
                let apart = Apart(workspace.root().to_owned());
                Arc::new(Scratch::make_apart(ctx, Some(&apart)).map_err(OpenError::Scratch)?)
            }
        };
        let temp = match temporary {
            Temporary::Private => Temp::Private(workspace.temp_dir().map_or_else(|| scratch.tmp(), Path::to_owned)),
            Temporary::Shared => Temp::Shared(workspace.temp_dir().map_or_else(std::env::temp_dir, Path::to_owned)),
        };
        if workspace.temp_dir().is_none() {
            workspace = workspace.temp(temp.path());
        }
        let places = places().into_iter().filter(|place| !workspace.protected().contains(place));
        workspace = places.collect::<Vec<_>>().into_iter().fold(workspace, Workspace::protect);
        let spills = Spills::into(scratch.output());
        Ok(Self { ctx: ctx.clone(), workspace, mode, provider, helper, env, network, temp, interpreter, spills })
    }

    /// Where a line begins, canonical.
    fn begin(&self, cwd: Option<&str>) -> Result<PathBuf, InvalidLine> {
        let path = cwd.map_or_else(|| self.workspace.root().to_owned(), |cwd| self.workspace.root().join(cwd));
        let entered = path.canonicalize().and_then(|canonical| {
            if !canonical.is_dir() {
                return Err(std::io::ErrorKind::NotADirectory.into());
            }
            access(&canonical, Access::EXEC_OK)?;
            Ok(canonical)
        });
        entered.map_err(|error| InvalidLine::Cwd { path, why: error.into() })
    }

    /// What the mode means at this moment.
    async fn boundary(&self, mode: Mode) -> Result<Boundary, ShellError> {
        let workspace = self.workspace.clone();
        // It looks at the disk.
        let look = move || workspace.boundary(mode);
        let boundary = self.ctx.spawn_blocking("boundary", look).map_err(|_| ShellError::Closing)?.await;
        Ok(boundary.map_err(|_| CannotConfine { why: "looking for what is protected panicked".to_owned() })?)
    }

    /// How a command is started so that the boundary holds.
    async fn launch(&self, command: Vec<OsString>, cwd: &Path, boundary: Boundary) -> Result<Launched, ShellError> {
        let network = self.network.unwrap_or_else(|| boundary.network());
        let mode = boundary.mode();
        let Some(provider) = self.provider.clone() else {
            let why = format!("the mode is {mode}, and there is no sandbox in this program");
            return Err(CannotConfine { why }.into());
        };
        if let Some(why) = boundary.withheld() {
            return Err(ShellError::Withheld(why.to_owned()));
        }
        let confined = Confined {
            argv: command,
            cwd: cwd.to_owned(),
            confinement: Confinement { boundary, network, temp: self.temp.clone() },
            provider,
        };
        // It looks at the disk.
        let confine = move || {
            let enforcement = confined.provider.enforcement();
            if let Enforcement::None(why) = enforcement {
                return Err(CannotConfine { why });
            }
            let launch = confined.provider.confine(&confined.command(), &confined.confinement)?;
            Ok(Launched { launch, held: Some((confined, enforcement)) })
        };
        let launched = self.ctx.spawn_blocking("confine", confine).map_err(|_| ShellError::Closing)?.await;
        let panicked = || CannotConfine { why: "the sandbox panicked".to_owned() };
        Ok(launched.map_err(|_| panicked())??)
    }

    fn unconfined(&self, command: &[OsString], cwd: &Path) -> Launched {
        let (program, args, plan) = guard(&self.helper, command, cwd);
        Launched { launch: Launch { program, args, plan, temp: self.temp.path().to_owned() }, held: None }
    }

    /// What a command that failed was denied.
    async fn denial(&self, confined: Confined, said: &str) -> Option<Denial> {
        let said = said[said.ceil_char_boundary(said.len().saturating_sub(EVIDENCE_LIMIT))..].to_owned();
        let look = move || confined.provider.evidence(&confined.command(), &confined.confinement, &said);
        self.ctx.spawn_blocking("evidence", look).ok()?.await.ok()?
    }
}

#[async_trait]
impl Shell for ConfinedShell {
    fn root(&self) -> &Path {
        self.workspace.root()
    }

    fn mode(&self) -> Mode {
        self.mode.mode()
    }

    fn check(&self, line: &Line) -> Result<PathBuf, ShellError> {
        sound(&line.command)?;
        Ok(self.begin(line.cwd.as_deref())?)
    }

    async fn run(
        &self,
        line: Line,
        grant: Option<&Grant>,
        cancelled: &CancellationToken,
        each: &mut (dyn for<'p> FnMut(&'p str) + Send),
    ) -> Result<Ran, ShellError> {
        let cwd = self.check(&line)?;
        let boundary = self.boundary(effective(self.mode.mode(), grant)).await?;
        let mode = boundary.mode();
        if boundary.unreadable_roots().iter().any(|root| cwd.starts_with(root)) {
            return Err(ShellError::Denied(Denial::new(Operation::Execute, cwd.to_string_lossy(), mode)));
        }
        let command = invocation(&self.interpreter, &line.command);
        let Launched { launch, held } = match boundary.is_confined() {
            true => self.launch(command, &cwd, boundary).await?,
            false => self.unconfined(&command, &cwd),
        };
        let Launch { program, args, plan, temp } = launch;
        let env = environment(&self.env, &temp);
        let process = Process::spawn(&self.ctx, Spawn { program, args, plan, cwd, env, streams: Streams::Captured });
        let process = process.map_err(|error| match error {
            SpawnError::Closing(_) => ShellError::Closing,
            error => ShellError::Spawn(error),
        })?;
        let spill = Some(self.spills.next());
        let limits = Limits { timeout: line.timeout, head: HEAD_LIMIT, tail: TAIL_LIMIT, spill };
        let finished = run(process, &limits, cancelled, |piece| each(piece)).await;
        if let Some(spilled) = &finished.output.spilled {
            self.spills.keep(spilled);
        }
        begun(&finished.how, held.is_some())?;
        let Some((confined, enforcement)) = held else {
            return Ok(Ran { finished, mode, denial: None, enforcement: None });
        };
        let denial = match failed(&finished) {
            true => self.denial(confined, &finished.output.text).await,
            false => None,
        };
        Ok(Ran { finished, mode, denial, enforcement: Some(enforcement) })
    }
}

struct Launched {
    launch: Launch,
    held: Option<(Confined, Enforcement)>,
}

/// A command with everything that holds it.
struct Confined {
    argv: Vec<OsString>,
    cwd: PathBuf,
    confinement: Confinement,
    provider: Arc<dyn SandboxProvider>,
}

impl Confined {
    fn command(&self) -> CommandLine<'_> {
        CommandLine { argv: &self.argv, cwd: &self.cwd }
    }
}

/// Whether a command line can be run at all.
fn sound(command: &str) -> Result<(), InvalidLine> {
    if command.trim().is_empty() {
        return Err(InvalidLine::Empty);
    }
    if command.contains('\0') {
        return Err(InvalidLine::Nul);
    }
    if command.len() > MAX_COMMAND_BYTES {
        return Err(InvalidLine::TooLong { bytes: command.len() });
    }
    match interactive(command) {
        Some((program, hint)) => Err(InvalidLine::Interactive { program, hint }),
        None => Ok(()),
    }
}

/// Tells a command that ended from one that never began.
fn begun(how: &How, is_confined: bool) -> Result<(), ShellError> {
    let (stage, why) = match how {
        How::Exited(_) | How::Signaled(_) | How::Killed | How::HelperDied { .. } => return Ok(()),
        How::NotFound { program, why } => (program.clone(), why.clone()),
        How::SetUpFailed { stage, why } => (stage.clone(), why.clone()),
    };
    Err(match is_confined {
        true => ShellError::SandboxFailed { stage, why },
        false => ShellError::NotStarted { stage, why },
    })
}

/// Whether it ended by itself, and not well. One that we ended was killed.
fn failed(finished: &Finished) -> bool {
    !matches!(finished.how, How::Exited(0) | How::Killed)
}
