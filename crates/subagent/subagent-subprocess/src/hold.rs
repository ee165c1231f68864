//! How a child is held, decided before it is started.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use context::Scope;
use rustix::fs::{Access, access};
use sandbox::{CommandLine, Confinement, Denial, Enforcement, Launch, Mode, Network, SandboxProvider, Temp, Workspace};
use sandbox_policy::{ModeSet, SandboxPolicy};
use scratch::Scratch;
use session::Delegation;
use subagent::{Start, StartError};
use subprocess::{Spawn, Streams, guard};

use crate::{Confine, Diagnostics, Refused, Settings, Unconfined, program};

/// How much of the end of what a tool of the child said is looked at for what was denied, in bytes.
const EVIDENCE_LIMIT: usize = 16 * 1024;

/// A child that can be started.
#[derive(Debug)]
pub struct Prepared {
    /// What is started.
    pub spawn: Ready,
    /// How it is held.
    pub held: Held,
    /// What was in force for the parent at the call: what the child's own denials are told under.
    pub mode: Mode,
    /// Where it runs, canonical.
    pub cwd: PathBuf,
    /// What shows that something was denied to it, where it is confined.
    pub evidence: Option<Evidence>,
    /// Cleans what is told of it.
    pub diagnostics: Diagnostics,
}

/// A tree to start, and the scope that is to own it.
#[derive(Debug)]
pub struct Ready {
    pub(crate) home: Home,
    pub(crate) spawn: Spawn,
}

/// Not a part of the run's scope: what that closes is killed at once, and a child is given time.
pub(crate) struct Home(pub(crate) Scope);

/// How a child is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// By the kernel.
    Confined {
        /// Under this mode's file rules.
        mode: Mode,
        /// What it may do on the network.
        network: Network,
        /// How much of that holds here.
        enforcement: Enforcement,
    },
    /// Not confined: its processes are kept together, and nothing else.
    Open(Open),
}

/// Why a child is not confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Its parent has no override.
    Unswitched,
    /// Its parent's override allows everything.
    FullAccess,
    /// An operator wants it so, whatever this override of its parent's says.
    Chosen(Mode),
}

/// Decides how a child is held, and checks what can be checked before there is one.
///
/// The mode is that of the parent as it was captured at the call, which nothing later changes. An operator's choice not to confine is in the parent's log
/// when this returns.
///
/// # Errors
///
/// Why it cannot be started.
pub fn prepare(
    start: &Start,
    settings: &Settings,
) -> impl Future<Output = Result<Prepared, StartError>> + Send + use<> {
    let (plan, provider) = (plan(start, settings), start.provider.clone());
    let (ctx, log, label) = (start.ctx.clone(), start.delegation.parent_session().clone(), start.request.label.clone());
    async move {
        let prepared = async {
            let plan = plan?;
            if let Err(Open::Chosen(mode)) = plan.held {
                log.append(Unconfined { provider: provider.clone(), mode, label })?;
                log.flush().await?;
            }
            // It looks at the disk, and may try the whole set-up of the sandbox.
            let preparing = ctx.spawn_blocking("prepare a child", move || plan.carry_out());
            preparing.map_err(|_| Refused::Closing)?.await.map_err(|_| Refused::Panicked("preparing the child"))?
        };
        prepared.await.map_err(|refused: Refused| refused.of(&provider))
    }
}

fn plan(start: &Start, settings: &Settings) -> Result<Plan, Refused> {
    if start.request.model.is_some() {
        return Err(Refused::Option("the model"));
    }
    if start.request.max_tokens.is_some() {
        return Err(Refused::Option("a limit of tokens"));
    }
    let realm = start.parent.ctx();
    let captured = captured(&start.delegation);
    let default = || realm.get::<SandboxPolicy>().map_or(Mode::ReadOnly, |policy| policy.default_mode());
    let held = match (captured, settings.confine) {
        (None, _) => Err(Open::Unswitched),
        (Some(Mode::DangerFullAccess), _) => Err(Open::FullAccess),
        (Some(mode @ (Mode::ReadOnly | Mode::WorkspaceWrite)), Confine::None) => Err(Open::Chosen(mode)),
        (Some(mode @ (Mode::ReadOnly | Mode::WorkspaceWrite)), Confine::Inherit) => Ok(mode),
    };
    Ok(Plan {
        settings: settings.clone(),
        root: PathBuf::from(&**start.delegation.parent().header().cwd()),
        held,
        workspace: realm.get::<Workspace>(),
        provider: realm.get::<dyn SandboxProvider>(),
        home: Home(Scope::root("child")),
        mode: captured.unwrap_or_else(default),
    })
}

/// The parent's override at the call.
fn captured(delegation: &Delegation) -> Option<Mode> {
    delegation.parent().latest::<ModeSet>().map(|set| set.mode)
}

struct Plan {
    settings: Settings,
    /// The parent's directory.
    root: PathBuf,
    held: Result<Mode, Open>,
    workspace: Option<Arc<Workspace>>,
    provider: Option<Arc<dyn SandboxProvider>>,
    home: Home,
    mode: Mode,
}

impl Plan {
    fn carry_out(self) -> Result<Prepared, Refused> {
        let root = entered(&self.root)?;
        let cwd = self.settings.cwd.as_deref().map_or_else(|| Ok(root.clone()), entered)?;
        let env = self.settings.environment();
        let program = program::find(&self.settings.command, &env, &root)?;
        let argv: Vec<OsString> = [program.into()].into_iter().chain(self.settings.args.iter().cloned()).collect();
        let diagnostics = Diagnostics::new(&env, &self.settings.env);
        let (launch, held, env, evidence) = match self.held {
            Err(open) => {
                let (program, args, plan) = guard(&self.settings.helper, &argv, &cwd);
                let temp = std::env::temp_dir();
                (Launch { program, args, plan, temp }, Held::Open(open), env, None)
            }
            Ok(mode) => {
                let (launch, held, evidence) = self.confine(mode, argv, &cwd)?;
                // Under `read-only` there is none, but for one that the operator made writable and named.
                let is_named = self.settings.env.iter().any(|(name, _)| name == "TMPDIR");
                let env = if is_named { env } else { env.with("TMPDIR", &launch.temp) };
                (launch, held, env, Some(evidence))
            }
        };
        let Launch { program, args, plan, temp: _ } = launch;
        let spawn = Spawn { program, args, plan, cwd: cwd.clone(), env, streams: Streams::Piped };
        let spawn = Ready { home: self.home, spawn };
        Ok(Prepared { spawn, held, mode: self.mode, cwd, evidence, diagnostics })
    }

    fn confine(&self, mode: Mode, argv: Vec<OsString>, cwd: &Path) -> Result<(Launch, Held, Evidence), Refused> {
        let cannot = |why: &str| Refused::CannotConfine { mode, why: why.to_owned() };
        let workspace = self.workspace.as_ref().ok_or_else(|| cannot("nothing here says what is Tether's own"))?;
        let provider = self.provider.clone().ok_or_else(|| cannot("there is no sandbox in this program"))?;
        let enforcement = provider.enforcement();
        if let Enforcement::None(why) = &enforcement {
            return Err(cannot(why));
        }
        let (workspace, temp) = self.temporary(workspace)?;
        let boundary = workspace.boundary_except(mode, &self.exceptions()?)?;
        if boundary.unreadable_roots().iter().any(|hidden| cwd.starts_with(hidden)) {
            return Err(Refused::Hidden { path: cwd.to_owned(), mode });
        }
        let network = self.settings.network.unwrap_or_else(|| boundary.network());
        let confined = Confined { argv, cwd: cwd.to_owned(), confinement: Confinement { boundary, network, temp } };
        let launch = provider
            .confine(&confined.command(), &confined.confinement)
            .map_err(|cannot| Refused::cannot_confine(mode, cannot))?;
        let evidence = Evidence { confined: Arc::new(confined), provider };
        Ok((launch, Held::Confined { mode, network, enforcement }, evidence))
    }

    /// The parent's temporary directory, or one for this child.
    fn temporary(&self, workspace: &Workspace) -> Result<(Workspace, Temp), Refused> {
        if let Some(temp) = workspace.temp_dir() {
            let machine = std::env::temp_dir().canonicalize();
            let temp = match machine.is_ok_and(|machine| machine == temp) {
                true => Temp::Shared(temp.to_owned()),
                false => Temp::Private(temp.to_owned()),
            };
            return Ok((workspace.clone(), temp));
        }
        let made = Scratch::make(&self.home.0).map_err(|why| Refused::Directory { path: std::env::temp_dir(), why })?;
        Ok((workspace.clone().temp(made.tmp()), Temp::Private(made.tmp())))
    }

    fn exceptions(&self) -> Result<Vec<PathBuf>, Refused> {
        let exception = |path: &PathBuf| {
            let found = path.canonicalize().and_then(|canonical| {
                if canonical.is_dir() { Ok(canonical) } else { Err(io::ErrorKind::NotADirectory.into()) }
            });
            found.map_err(|why| Refused::Writable { path: path.clone(), why })
        };
        self.settings.writable.iter().map(exception).collect()
    }
}

/// A directory that one can enter, canonical.
fn entered(path: &Path) -> Result<PathBuf, Refused> {
    let entered = || {
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an absolute path"));
        }
        let canonical = path.canonicalize()?;
        if !canonical.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        access(&canonical, Access::EXEC_OK)?;
        Ok(canonical)
    };
    entered().map_err(|why| Refused::Directory { path: path.to_owned(), why })
}

/// A child with what holds it.
#[derive(Debug)]
struct Confined {
    argv: Vec<OsString>,
    cwd: PathBuf,
    confinement: Confinement,
}

impl Confined {
    fn command(&self) -> CommandLine<'_> {
        CommandLine { argv: &self.argv, cwd: &self.cwd }
    }
}

/// Shows what a confined child was denied.
#[derive(Clone)]
pub struct Evidence {
    confined: Arc<Confined>,
    provider: Arc<dyn SandboxProvider>,
}

impl Evidence {
    /// Whether something was denied, as far as what a tool of the child said at its end can show that. It looks at the disk.
    pub fn denial(&self, said: &str) -> Option<Denial> {
        let said = &said[said.ceil_char_boundary(said.len().saturating_sub(EVIDENCE_LIMIT))..];
        self.provider.evidence(&self.confined.command(), &self.confined.confinement, said)
    }

    /// The same for a tool that failed to write there and did not say why: whether this child could not have, and an unconfined
    /// one could.
    pub fn denied_write(&self, path: &Path) -> Option<Denial> {
        // What a program says that tells why.
        self.denial(&format!("{}: Read-only file system", path.display()))
    }
}

impl fmt::Debug for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evidence").field("confined", &self.confined).finish_non_exhaustive()
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Home")
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confined { mode, network, enforcement } => {
                let network = match network {
                    Network::Allowed => "allowed",
                    Network::Denied => "denied",
                };
                write!(f, "confined to {mode}, network {network}: {enforcement}")
            }
            Self::Open(open) => {
                f.write_str("not confined: ")?;
                match open {
                    Open::Unswitched => f.write_str("its parent has no override")?,
                    Open::FullAccess => f.write_str("its parent may do everything")?,
                    Open::Chosen(mode) => write!(f, "the operator has chosen that, under the parent's {mode}")?,
                }
                f.write_str("; killing its tree: partial, without a process namespace")
            }
        }
    }
}
