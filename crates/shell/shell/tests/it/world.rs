//! A directory with a workspace in it, an agent's scope, and a provider that holds commands by not running them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::Scope;
use sandbox::{
    CannotConfine, CommandLine, Confinement, Denial, Enforcement, Grant, Launch, Mode, ModeSource, Network, Operation,
    SandboxProvider, Workspace,
};
use shell::{ConfinedShell, Line, Parts, Ran, Shell, ShellError, Temporary};
use subprocess::{Environment, guard};
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(60);

/// `ws` is the root, `home` is Tether's.
pub(crate) struct World {
    pub(crate) agent: Scope,
    pub(crate) top: PathBuf,
    pub(crate) mode: Arc<Switch>,
    pub(crate) dir: tempfile::TempDir,
}

/// A mode that is switched while a shell is open.
pub(crate) struct Switch(pub(crate) Mutex<Mode>);

impl ModeSource for Switch {
    fn mode(&self) -> Mode {
        *self.0.lock().unwrap()
    }
}

/// Runs a command only if every file that it redirects its output to may be written. Everything that it is asked is
/// kept.
pub(crate) struct Fake {
    pub(crate) enforcement: Enforcement,
    pub(crate) how: Does,
    pub(crate) confined: Mutex<Vec<(Vec<OsString>, PathBuf, Confinement)>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

pub(crate) enum Does {
    Holds,
    Refuses,
    /// Starts something that never starts the command.
    FailsToStart,
}

impl Fake {
    pub(crate) fn new(how: Does) -> Arc<Self> {
        let (confined, asked) = (Mutex::default(), Mutex::default());
        Arc::new(Self { enforcement: Enforcement::Full, how, confined, asked })
    }

    fn denied(command: &CommandLine<'_>, confinement: &Confinement) -> Option<PathBuf> {
        let line = command.argv.last()?.to_str()?;
        let targets = line.split("> ").skip(1).filter_map(|rest| rest.split([' ', ';', '\n']).next());
        let writable = confinement.boundary.writable_roots();
        targets
            .map(|target| command.cwd.join(target))
            .find(|target| !writable.iter().any(|root| target.starts_with(root)))
    }
}

impl SandboxProvider for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn enforcement(&self) -> Enforcement {
        self.enforcement.clone()
    }

    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine> {
        let asked = (command.argv.to_vec(), command.cwd.to_owned(), confinement.clone());
        self.confined.lock().unwrap().push(asked);
        let argv = match (&self.how, Self::denied(command, confinement)) {
            (Does::Refuses, _) => return Err(CannotConfine { why: "the moon is full".into() }),
            (Does::FailsToStart, _) => vec!["/no/such/program".into()],
            (Does::Holds, None) => command.argv.to_vec(),
            (Does::Holds, Some(path)) => {
                vec!["sh".into(), "-c".into(), format!("echo cannot write {}; exit 1", path.display()).into()]
            }
        };
        let (program, args, plan) = guard(Path::new("/proc/self/exe"), &argv, command.cwd);
        Ok(Launch { program, args, plan, temp: confinement.temp.path().to_owned() })
    }

    fn evidence(&self, _: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
        self.asked.lock().unwrap().push(said.to_owned());
        let path = said.lines().find_map(|line| line.strip_prefix("cannot write "))?;
        Some(Denial::new(Operation::Write, path, confinement.boundary.mode()))
    }
}

impl World {
    pub(crate) fn new(mode: Mode) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        std::fs::create_dir(top.join("home")).unwrap();
        Self { agent: Scope::root("agent"), top, mode: Arc::new(Switch(Mutex::new(mode))), dir }
    }

    pub(crate) fn parts(&self, provider: Option<Arc<Fake>>) -> Parts {
        Parts {
            workspace: Workspace::new(self.top.join("ws")).home(self.top.join("home")),
            mode: self.mode.clone(),
            provider: provider.map(|fake| fake as Arc<dyn SandboxProvider>),
            helper: "/proc/self/exe".into(),
            env: Environment::inherited(),
            network: None,
            temporary: Temporary::Private,
            scratch: None,
        }
    }

    pub(crate) fn shell(&self, provider: Option<Arc<Fake>>) -> ConfinedShell {
        ConfinedShell::open(&self.agent, self.parts(provider)).unwrap()
    }

    /// The scope is closed, and nothing failed at that.
    pub(crate) async fn close(self) {
        in_time(self.agent.close()).await.unwrap();
    }
}

pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, work).await.expect("in time")
}

pub(crate) fn line(command: &str) -> Line {
    Line::new(command, DEADLINE)
}

pub(crate) fn line_in(cwd: &str, command: &str) -> Line {
    Line { cwd: Some(cwd.into()), ..line(command) }
}

pub(crate) async fn run(shell: &ConfinedShell, line: Line) -> Result<Ran, ShellError> {
    granted(shell, line, None).await
}

pub(crate) async fn granted(shell: &ConfinedShell, line: Line, grant: Option<Mode>) -> Result<Ran, ShellError> {
    let grant = grant.map(Grant::new);
    in_time(shell.run(line, grant.as_ref(), &CancellationToken::new(), &mut |_| {})).await
}

/// What a line says that ends well.
pub(crate) async fn said(shell: &ConfinedShell, line: Line) -> String {
    let ran = run(shell, line).await.unwrap();
    assert_eq!(ran.finished.how, subprocess::How::Exited(0), "{}", ran.finished.output.text);
    ran.finished.output.text.trim_end().to_owned()
}

pub(crate) fn network(fake: &Fake) -> Network {
    fake.confined.lock().unwrap().last().expect("it was asked").2.network
}
