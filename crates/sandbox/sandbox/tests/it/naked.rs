//! A provider that starts commands and holds nothing of them, with bugs on top.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use sandbox::testing::{Ended, Fixture, How, Running};
use sandbox::{CannotConfine, CommandLine, Confinement, Denial, Enforcement, Launch, Operation, SandboxProvider};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// None but that it holds nothing.
    HoldsNothing,
    /// Says that it holds nothing, and runs commands all the same.
    RunsAnyway,
    /// Refuses, and does not say why.
    RefusesWithoutAWord,
    /// Says that something stays open, and not what.
    HidesWhatIsOpen,
    /// A command has variables that nobody gave it.
    AddsToTheEnvironment,
    /// A command runs where the root is.
    ForgetsTheDirectory,
    /// Splits arguments at their spaces.
    SplitsArguments,
    /// Whatever went wrong is exit 1.
    SwallowsCodes,
    /// A program that is not there is a command that failed.
    SwallowsMissingPrograms,
    /// Every failure was a denial.
    CriesWolf,
    /// Puts a file beside the workspace, and leaves it.
    LeavesAFile,
    /// Takes another directory for the session's temporary one.
    MistakesTheTemporaryDirectory,
}

pub(crate) struct Naked(pub(crate) Bug);

impl SandboxProvider for Naked {
    fn name(&self) -> &str {
        "naked"
    }

    fn enforcement(&self) -> Enforcement {
        match self.0 {
            Bug::RunsAnyway => Enforcement::None("there are no means".to_owned()),
            Bug::RefusesWithoutAWord => Enforcement::None(String::new()),
            Bug::HidesWhatIsOpen => Enforcement::Partial(vec![String::new()]),
            _ => Enforcement::Full,
        }
    }

    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine> {
        if self.0 == Bug::RefusesWithoutAWord {
            return Err(CannotConfine { why: String::new() });
        }
        let before: &[&str] = match self.0 {
            Bug::AddsToTheEnvironment => &["env", "ADDED=1"],
            Bug::ForgetsTheDirectory => &["sh", "-c", r#"cd "$ROOT"; exec "$0" "$@""#],
            Bug::SplitsArguments => &["sh", "-c", "exec $0 $*"],
            Bug::SwallowsCodes => &["sh", "-c", r#""$0" "$@" || exit 1"#],
            Bug::SwallowsMissingPrograms => &["sh", "-c", r#"exec "$0" "$@""#],
            Bug::LeavesAFile => &["sh", "-c", r#"echo x > "$ROOT/.placeholder"; exec "$0" "$@""#],
            _ => &[],
        };
        let mut argv = before.iter().map(OsString::from).chain(command.argv.iter().cloned());
        let program = argv.next().expect("a command is never empty").into();
        let temp = match self.0 {
            Bug::MistakesTheTemporaryDirectory => command.cwd.to_owned(),
            _ => confinement.temp.path().to_owned(),
        };
        Ok(Launch { program, args: argv.collect(), plan: Vec::new(), temp })
    }

    fn evidence(&self, _: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
        let mode = confinement.boundary.mode();
        let denial = |target: &str| Some(Denial::new(Operation::Write, target, mode));
        match self.0 {
            Bug::CriesWolf => denial(said),
            _ => None,
        }
    }
}

pub(crate) struct House(pub(crate) Bug);

impl Fixture for House {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::new(Naked(self.0))
    }

    fn powerless(&self) -> Option<Arc<dyn SandboxProvider>> {
        (self.0 == Bug::RunsAnyway).then(|| self.provider())
    }

    fn place(&self) -> PathBuf {
        env!("CARGO_TARGET_TMPDIR").into()
    }

    fn probe(&self) -> PathBuf {
        std::env::current_exe().expect("it runs")
    }

    fn start(&self, launch: Launch, cwd: &Path, env: &[(OsString, OsString)]) -> Box<dyn Running> {
        let (mut output, said) = std::io::pipe().expect("there are descriptors");
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).current_dir(cwd).env_clear().envs(env.iter().cloned()).process_group(0);
        command.stdin(Stdio::null()).stdout(said.try_clone().expect("there are descriptors")).stderr(said);
        let child = command.spawn().ok();
        drop(command);
        let reading = std::thread::spawn(move || {
            let mut text = Vec::new();
            output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
        });
        Box::new(Alone { child, reading, stopped: false })
    }
}

/// A process and its group.
struct Alone {
    child: Option<Child>,
    reading: std::thread::JoinHandle<String>,
    stopped: bool,
}

impl Running for Alone {
    fn stop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().expect("it is ours");
        }
        self.stopped = true;
    }

    fn end(self: Box<Self>) -> Ended {
        let Self { child, reading, stopped } = *self;
        let Some(mut child) = child else { return Ended { how: How::NotExecuted, output: String::new() } };
        let status = child.wait().expect("it is ours");
        // What is still in its group would keep the pipe.
        let group = format!("-{}", child.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
        let how = match (stopped, status.code(), status.signal()) {
            (true, ..) => How::Stopped,
            (false, Some(code), _) => How::Exited(code),
            (false, None, signal) => How::Signaled(signal.unwrap_or_default()),
        };
        Ended { how, output: reading.join().unwrap_or_default() }
    }
}
