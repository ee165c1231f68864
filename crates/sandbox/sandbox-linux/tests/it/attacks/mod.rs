//! Attacks, one row each. Every row runs as every user, under both confining modes, with and without namespaces; and once
//! without a sandbox, where it has to do the harm that the sandbox is to prevent.

mod files;
mod git;
mod kernel;
mod limits;
mod network;
mod processes;
pub(crate) mod programs;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::OnceLock;

use sandbox::{Enforcement, Mode, SandboxProvider};
use sandbox_linux::LinuxSandbox;
use subprocess::Finished;

use crate::runs::{confined, sh, unconfined};
use crate::who::Who;
use crate::yard::{ESCAPED, Home, SECRET, Yard};

/// With it, a row that cannot run is a failure.
const ENFORCED: &str = "TETHER_TEST_ENFORCED";

/// One row.
#[derive(Clone, Copy)]
pub(crate) struct Attack {
    name: &'static str,
    tries: Tries,
    home: Home,
    modes: &'static [Mode],
    without_namespaces: WithoutNamespaces,
    alone: Alone,
}

#[derive(Clone, Copy)]
enum Tries {
    Script(&'static str),
    /// One of [`programs`].
    Program(&'static str),
}

/// What holds it where nothing can be mounted.
#[derive(Clone, Copy)]
enum WithoutNamespaces {
    Closed,
    /// Nothing does, and `Partial` says so in a line that begins with this.
    Open(&'static str),
    /// The sandbox refuses to run anything.
    Refused,
}

/// What it does without a sandbox.
#[derive(Clone, Copy)]
enum Alone {
    Harms,
    /// It takes root.
    HarmsAsRoot,
    /// It cannot be tried, or not be seen, on every machine.
    Unknown,
}

impl Attack {
    const fn new(name: &'static str, tries: Tries) -> Self {
        Self {
            name,
            tries,
            home: Home::Outside,
            modes: &[Mode::ReadOnly, Mode::WorkspaceWrite],
            without_namespaces: WithoutNamespaces::Closed,
            alone: Alone::Harms,
        }
    }

    pub(crate) const fn sh(name: &'static str, script: &'static str) -> Self {
        Self::new(name, Tries::Script(script))
    }

    pub(crate) const fn program(name: &'static str) -> Self {
        Self::new(name, Tries::Program(name))
    }

    /// Tether's directory is inside the workspace.
    pub(crate) const fn home_inside(self) -> Self {
        Self {
            home: Home::Inside,
            without_namespaces: WithoutNamespaces::Refused,
            modes: &[Mode::WorkspaceWrite],
            ..self
        }
    }

    pub(crate) const fn writing(self) -> Self {
        Self { modes: &[Mode::WorkspaceWrite], ..self }
    }

    pub(crate) const fn reading(self) -> Self {
        Self { modes: &[Mode::ReadOnly], ..self }
    }

    pub(crate) const fn open_without_namespaces(self, said: &'static str) -> Self {
        Self { without_namespaces: WithoutNamespaces::Open(said), ..self }
    }

    pub(crate) const fn harmful_as_root(self) -> Self {
        Self { alone: Alone::HarmsAsRoot, ..self }
    }

    pub(crate) const fn harmless_alone(self) -> Self {
        Self { alone: Alone::Unknown, ..self }
    }

    fn argv(&self) -> Vec<OsString> {
        match self.tries {
            Tries::Script(script) => sh(script),
            Tries::Program(name) => programs::argv(name),
        }
    }

    /// Runs it, and says what harm it did.
    fn harm(&self, who: Who, mode: Mode, run: impl FnOnce(&Yard) -> Finished) -> (Vec<String>, Finished) {
        let mut yard = Yard::new(who, self.home);
        let before = yard.untouchable(mode);
        let ran = run(&yard);
        let mut harm = before.changes(&yard.untouchable(mode));
        harm.extend(yard.harm());
        harm.extend(yard.survivors().into_iter().map(|pid| format!("process {pid} goes on")));
        harm.extend(ran.output.text.contains(ESCAPED).then(|| format!("it says: {}", ran.output.text)));
        harm.extend(ran.output.text.contains(SECRET).then(|| format!("it could read: {}", ran.output.text)));
        (harm, ran)
    }
}

/// Both tiers, with what each says of itself.
pub(crate) fn tiers() -> &'static [(Tier, LinuxSandbox, Enforcement); 2] {
    static TIERS: OnceLock<[(Tier, LinuxSandbox, Enforcement); 2]> = OnceLock::new();
    TIERS.get_or_init(|| {
        let tier = |tier, sandbox: LinuxSandbox| {
            let enforcement = sandbox.enforcement();
            (tier, sandbox, enforcement)
        };
        [tier(Tier::Best, LinuxSandbox::new()), tier(Tier::WithoutNamespaces, LinuxSandbox::new().without_namespaces())]
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Best,
    WithoutNamespaces,
}

/// The tiers that can be had, once the others have been told.
pub(crate) fn usable() -> Vec<(Tier, &'static LinuxSandbox, Vec<String>)> {
    let mut usable = Vec::new();
    for (tier, sandbox, enforcement) in tiers() {
        match (tier, enforcement) {
            (Tier::Best, Enforcement::Full) => usable.push((*tier, sandbox, Vec::new())),
            (Tier::WithoutNamespaces, Enforcement::Partial(open)) => usable.push((*tier, sandbox, open.clone())),
            _ => did_not_run(&format!("all rows under {tier:?}"), &enforcement.to_string()),
        }
    }
    usable
}

/// Says in the summary what did not run, and fails where everything has to.
#[expect(clippy::print_stderr, reason = "the summary of a test")]
pub(crate) fn did_not_run(what: &str, why: &str) {
    assert!(std::env::var_os(ENFORCED).is_none_or(|set| set != "1"), "{what} did not run: {why}");
    eprintln!("did not run: {what}: {why}");
}

/// Whether a tool is installed. A row about one that is not says so in the summary, and passes.
#[expect(clippy::print_stderr, reason = "the summary of a test")]
pub(crate) fn has(tool: &str) -> bool {
    let has = std::process::Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("did not run: what is about {tool}: it is not installed");
    }
    has
}

/// Runs every row in every way. All that failed are told together.
#[track_caller]
pub(crate) fn hold(attacks: &[Attack]) {
    let mut failed = Vec::new();
    for attack in attacks {
        for (tier, sandbox, open) in usable() {
            for (who, mode) in Who::all().iter().flat_map(|who| attack.modes.iter().map(|mode| (*who, *mode))) {
                let row = format!("{} as {who}, {mode}, {tier:?}", attack.name);
                match (tier, attack.without_namespaces) {
                    (Tier::WithoutNamespaces, WithoutNamespaces::Open(said)) => {
                        if !open.iter().any(|line| line.starts_with(said)) {
                            failed.push(format!("{row}: it is open, and `{said}` is not said of it: {open:#?}"));
                        }
                    }
                    (Tier::WithoutNamespaces, WithoutNamespaces::Refused) => {}
                    _ => {
                        let (harm, ran) = attack.harm(who, mode, |yard| confined(sandbox, yard, mode, &attack.argv()));
                        let set_up = matches!(ran.how, subprocess::How::Exited(_) | subprocess::How::Signaled(_));
                        if !harm.is_empty() || !set_up {
                            failed.push(format!("{row}: {:?} {harm:#?}\n{}", ran.how, ran.output.text));
                        }
                    }
                }
            }
        }
        let shows = match attack.alone {
            Alone::Harms => true,
            Alone::HarmsAsRoot => Who::Self_.is_root(),
            Alone::Unknown => false,
        };
        if shows {
            let alone = |who: &Who| attack.harm(*who, Mode::WorkspaceWrite, |yard| unconfined(yard, &attack.argv()));
            let tried: Vec<_> = Who::all().iter().map(alone).collect();
            if tried.iter().all(|(harm, _)| harm.is_empty()) {
                let said: BTreeSet<_> = tried.iter().map(|(_, ran)| &ran.output.text).collect();
                let why = format!("it does no harm without a sandbox either: {said:#?}");
                did_not_run(&format!("{} to show its harm", attack.name), &why);
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
