//! The process between the harness and a confined command.

mod anchored;
mod caps;
mod fallback;
mod init;
mod landlock;
mod limits;
mod mounts;
mod placeholders;
mod protect;
mod seccomp;
mod stage;
mod view;
mod witness;

use std::io::{self, Write as _};

use subprocess::Report;
use subprocess::helper::{Control, NoHelper, asked};

use crate::plan::{Plan, Tier};
pub(crate) use placeholders::STAGE as PLACEHOLDER;
pub(crate) use protect::is_whole;
use stage::SetUp;

/// The first argument of this helper.
pub const CONFINE: &str = "__tether-confine";

/// Is the helper that confines, if this process was started as one, and says with which code to exit. The first thing in
/// `main`: it needs a process with one thread.
pub fn run_if_asked() -> Option<i32> {
    asked(CONFINE).then(run)
}

fn run() -> i32 {
    let control = match Control::open() {
        Ok(control) => control,
        // The harness is gone: nothing was started, and nobody reads a complaint.
        Err(NoHelper::NoPlan(_)) => return 1,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            return 2;
        }
    };
    let end = follow(&control);
    end.iter().for_each(|report| control.report(report));
    i32::from(end.is_none())
}

/// Runs the command to the end of its tree. `None` if it was abandoned, or if its end has been told.
fn follow(control: &Control) -> Option<Report> {
    let plan: Plan = match serde_json::from_slice(control.plan()) {
        Ok(plan) => plan,
        Err(error) => return Some(SetUp::new("plan", error).into()),
    };
    let ran = match plan.tier {
        Tier::Whole | Tier::WithoutLandlock => init::run(control, &plan),
        Tier::WithoutNamespaces => fallback::run(control, &plan),
    };
    ran.unwrap_or_else(|failed| Some(failed.into()))
}

fn note(control: &Control, text: impl Into<String>) {
    control.report(&Report::Note { text: text.into() });
}

impl From<SetUp> for Report {
    fn from(failed: SetUp) -> Self {
        Self::Failed { stage: failed.stage.to_owned(), why: failed.why }
    }
}
