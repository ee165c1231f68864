use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use sandbox::{CannotConfine, CommandLine, Confinement, Denial, Enforcement, Launch, SandboxProvider};

use crate::evidence;
use crate::helper::CONFINE;
use crate::plan::{Plan, Tier};
use crate::probe::{Fails, probe};

/// Holds commands with the Linux kernel: with namespaces, Landlock and seccomp where they can be had, else with Landlock and
/// seccomp, else not at all. What it is told at its making decides, and nothing in the environment.
#[derive(Debug)]
pub struct LinuxSandbox {
    helper: PathBuf,
    allowed: Allowed,
    probed: OnceLock<Probed>,
    /// One at a time tries.
    trying: Mutex<()>,
}

/// Which tiers are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Best,
    WithoutNamespaces,
}

/// What a machine can hold, and how.
#[derive(Clone, Debug)]
struct Probed {
    enforcement: Enforcement,
    tier: Option<Tier>,
}

impl LinuxSandbox {
    /// The best that the machine can do. The helper is this executable, which calls
    /// [`helper::run_if_asked`](crate::helper::run_if_asked) first in its `main`.
    pub fn new() -> Self {
        Self::with_helper("/proc/self/exe")
    }

    /// The same with another executable as the helper.
    pub fn with_helper(helper: impl Into<PathBuf>) -> Self {
        Self { helper: helper.into(), allowed: Allowed::Best, probed: OnceLock::new(), trying: Mutex::new(()) }
    }

    /// Does without namespaces even where they could be had. It narrows: what is reported is `partial` at most, with what
    /// stays open.
    pub fn without_namespaces(self) -> Self {
        Self { allowed: Allowed::WithoutNamespaces, probed: OnceLock::new(), ..self }
    }

    /// What could not be tried is tried again the next time: a weaker tier is never taken for what has passed by then.
    fn probed(&self) -> Probed {
        if let Some(probed) = self.probed.get() {
            return probed.clone();
        }
        let _turn = self.trying.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probed) = self.probed.get() {
            return probed.clone();
        }
        match self.probe() {
            Ok(probed) => self.probed.get_or_init(|| probed).clone(),
            Err(why) => Probed { enforcement: Enforcement::None(why), tier: None },
        }
    }

    fn probe(&self) -> Result<Probed, String> {
        let best = [Tier::Whole, Tier::WithoutLandlock, Tier::WithoutNamespaces];
        let tiers = match self.allowed {
            Allowed::Best => &best[..],
            Allowed::WithoutNamespaces => &best[2..],
        };
        let mut refused: Vec<String> = Vec::new();
        for tier in tiers {
            match probe(&self.helper, *tier) {
                Ok(open) if open.is_empty() && *tier == Tier::Whole => {
                    return Ok(Probed { enforcement: Enforcement::Full, tier: Some(*tier) });
                }
                Ok(open) => {
                    let why = refused.iter().map(|why| format!("not everything can be held: {why}"));
                    let open = why.chain(open).collect();
                    return Ok(Probed { enforcement: Enforcement::Partial(open), tier: Some(*tier) });
                }
                Err(Fails::Now(why)) => return Err(why),
                Err(Fails::Never(why)) if refused.contains(&why) => {}
                Err(Fails::Never(why)) => refused.push(why),
            }
        }
        Ok(Probed { enforcement: Enforcement::None(refused.join("; ")), tier: None })
    }
}

impl Default for LinuxSandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl SandboxProvider for LinuxSandbox {
    fn name(&self) -> &str {
        "linux"
    }

    fn enforcement(&self) -> Enforcement {
        self.probed().enforcement
    }

    fn confine(&self, command: &CommandLine<'_>, confinement: &Confinement) -> Result<Launch, CannotConfine> {
        let probed = self.probed();
        let Some(tier) = probed.tier else {
            return Err(CannotConfine { why: probed.enforcement.to_string() });
        };
        let (plan, temp) = Plan::new(tier, command, confinement)?;
        Ok(Launch { program: self.helper.clone(), args: vec![CONFINE.into()], plan: plan.to_bytes(), temp })
    }

    fn evidence(&self, command: &CommandLine<'_>, confinement: &Confinement, said: &str) -> Option<Denial> {
        evidence::find(self.probed().tier?, command, confinement, said)
    }
}
