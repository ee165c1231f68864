//! What every provider owes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use context::Scope;
use sandbox::testing::{self, Fixture, How, Running, check, contract};
use sandbox::{
    CannotConfine, CommandLine, Confinement, Denial, Enforcement, Launch, Mode, Network, SandboxProvider, Workspace,
};
use sandbox_linux::LinuxSandbox;
use subprocess::{Environment, Limits, Process, Spawn, Streams};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::attacks::{Tier, usable};
use crate::ground::{ground, program};
use crate::who::{PLACE, again_as_an_ordinary_user};

struct House<P>(fn() -> P);

impl<P: SandboxProvider + 'static> Fixture for House<P> {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        Arc::new(self.0())
    }

    fn powerless(&self) -> Option<Arc<dyn SandboxProvider>> {
        Some(Arc::new(LinuxSandbox::with_helper("/nowhere/helper")))
    }

    fn place(&self) -> PathBuf {
        std::env::var_os(PLACE).map_or_else(ground, PathBuf::from)
    }

    fn probe(&self) -> PathBuf {
        program()
    }

    fn start(&self, launch: Launch, cwd: &Path, env: &[(OsString, OsString)]) -> Box<dyn Running> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let env = env.iter().fold(Environment::default(), |env, (name, value)| env.with(name, value));
        let Launch { program, args, plan, temp: _ } = launch;
        let spawn = Spawn { program, args, plan, cwd: cwd.to_owned(), env, streams: Streams::Captured };
        let (scope, process) = runtime.block_on(async {
            let scope = Scope::root("contract");
            let process = Process::spawn(&scope, spawn).unwrap();
            (scope, process)
        });
        Box::new(Command { runtime, scope, process })
    }
}

struct Command {
    runtime: Runtime,
    scope: Scope,
    process: Process,
}

impl Running for Command {
    fn stop(&mut self) {
        self.process.kill();
    }

    fn end(self: Box<Self>) -> testing::Ended {
        let Self { runtime, scope, process } = *self;
        let limits = Limits { timeout: Duration::from_secs(120), head: 64 * 1024, tail: 64 * 1024, spill: None };
        let finished = runtime.block_on(async {
            let finished = subprocess::run(process, &limits, &CancellationToken::new(), |_| {}).await;
            scope.close().await.unwrap();
            finished
        });
        let how = match finished.how {
            subprocess::How::Exited(code) => How::Exited(code),
            subprocess::How::Signaled(signal) => How::Signaled(signal),
            subprocess::How::Killed => How::Stopped,
            subprocess::How::NotFound { .. } => How::NotExecuted,
            subprocess::How::SetUpFailed { stage, why } => How::NotSetUp(format!("{stage}: {why}")),
            subprocess::How::HelperDied { status } => How::Lost(status),
        };
        testing::Ended { how, output: finished.output.text }
    }
}

fn without_namespaces() -> LinuxSandbox {
    LinuxSandbox::new().without_namespaces()
}

/// Whether a tier can be had, once it has been told if not.
fn is_usable(tier: Tier) -> bool {
    usable().iter().any(|(usable, ..)| *usable == tier)
}

#[test]
fn it_keeps_the_contract() {
    if is_usable(Tier::Best) {
        contract(|| House(LinuxSandbox::new));
    }
}

#[test]
fn it_keeps_the_contract_without_namespaces() {
    if is_usable(Tier::WithoutNamespaces) {
        contract(|| House(without_namespaces));
    }
}

#[test]
fn an_ordinary_user_has_the_same() {
    again_as_an_ordinary_user("contract::it_keeps_the_contract");
    again_as_an_ordinary_user("contract::it_keeps_the_contract_without_namespaces");
}

/// A provider that holds all but one thing.
struct Broken(LinuxSandbox, Bug);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    /// Read-only is workspace-write.
    Widens,
    /// Protects nothing below the root.
    ForgetsProtections,
    /// Hides nothing.
    ForgetsHome,
    /// The network is always allowed.
    AllowsTheNetwork,
    /// The network is never allowed.
    DeniesTheNetwork,
    /// What was denied is never told.
    IsSilent,
    /// What is above the root may be written as well.
    RaisesTheRoot,
}

impl SandboxProvider for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn enforcement(&self) -> Enforcement {
        self.0.enforcement()
    }

    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine> {
        let Confinement { boundary, network, temp } = confinement;
        let (root, mode, home) = (boundary.root(), boundary.mode(), boundary.unreadable_roots().first());
        let home = |workspace: Workspace| home.into_iter().fold(workspace, Workspace::home);
        // What is protected beside what always is.
        let whole = Workspace::new(root).temp(temp.path()).protect("kept");
        let boundary = match self.1 {
            Bug::Widens => home(whole).boundary(Mode::WorkspaceWrite),
            Bug::ForgetsProtections => home(Workspace::new(root).temp(temp.path())).boundary(mode),
            Bug::ForgetsHome => whole.boundary(mode),
            Bug::RaisesTheRoot => {
                home(Workspace::new(root.parent().unwrap()).temp(temp.path()).protect(root.join("kept"))).boundary(mode)
            }
            Bug::AllowsTheNetwork | Bug::DeniesTheNetwork | Bug::IsSilent => boundary.clone(),
        };
        let network = match self.1 {
            Bug::AllowsTheNetwork => Network::Allowed,
            Bug::DeniesTheNetwork => Network::Denied,
            _ => *network,
        };
        self.0.confine(command, &Confinement { boundary, network, temp: temp.clone() })
    }

    fn evidence(&self, command: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
        match self.1 {
            Bug::IsSilent => None,
            _ => self.0.evidence(command, confinement, said),
        }
    }
}

#[track_caller]
fn found(bug: Bug, make: fn() -> Broken, found: &[(&str, &str)]) {
    for (name, why) in found {
        match check(name, House(make)) {
            Err(fault) => assert!(fault.check == *name && fault.why.contains(why), "{bug:?}: {fault}"),
            Ok(()) => panic!("{bug:?}: `{name}` found nothing"),
        }
    }
}

macro_rules! found {
    ($bug:ident: $(($name:ident, $why:literal)),+) => {
        found(Bug::$bug, || Broken(LinuxSandbox::new(), Bug::$bug), &[$((stringify!($name), $why)),+])
    };
}

#[test]
fn each_thing_that_is_not_held_is_found() {
    if !is_usable(Tier::Best) {
        return;
    }
    found!(Widens: (read_only_writes_nothing, "under read-only, the disk changed"),
        (commands_at_once_are_held_each_by_its_own, "each writes what its own mode lets it"));
    found!(ForgetsProtections: (protected_paths_stay, "what is protected changed"));
    found!(ForgetsHome: (what_is_tethers_own_is_out_of_reach, "it read what is Tether's own"),
        (what_is_tethers_own_is_out_of_reach_inside_the_root, "it read what is Tether's own inside the root"));
    found!(AllowsTheNetwork: (a_denied_network_reaches_nobody, "it connected to this machine"),
        (a_denied_network_is_reached_by_nobody, "this machine reached the command"));
    found!(DeniesTheNetwork: (an_allowed_network_is_there, "Exited(1)"));
    found!(IsSilent: (a_denial_is_told_and_shown, "`echo x > src/new` was denied"));
    found!(RaisesTheRoot: (nothing_outside_changes, "what is outside changed"),
        (protected_paths_stay, "what is protected changed"));
}
