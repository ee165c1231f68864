//! The helper of commands that are not confined.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::process::set_child_subreaper;

use super::{Control, NoHelper, Waited};
use crate::Report;

/// What the guard is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) cwd: PathBuf,
    pub(crate) argv: Vec<OsString>,
}

impl Plan {
    /// Each text with its length before it, the directory first.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let texts = std::iter::once(self.cwd.as_os_str()).chain(self.argv.iter().map(|arg| &**arg));
        texts.fold(Vec::new(), |mut plan, text| {
            // A text that is longer makes the plan too long, which is refused.
            plan.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
            plan.extend(text.as_bytes());
            plan
        })
    }

    fn decode(mut plan: &[u8]) -> Option<Self> {
        let mut texts = Vec::new();
        while let Some((len, rest)) = plan.split_first_chunk() {
            let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            texts.push(OsStr::from_bytes(text).to_owned());
            plan = rest;
        }
        let mut texts = texts.into_iter();
        let cwd = texts.next().filter(|_| plan.is_empty())?;
        Some(Self { cwd: cwd.into(), argv: texts.collect() })
    }
}

/// Is the guard, to the end of the tree.
pub(super) fn run() -> i32 {
    let control = match Control::open() {
        Ok(control) => control,
        // Started by hand.
        Err(error @ NoHelper::NotPassed { .. }) => {
            let _ = writeln!(io::stderr(), "{error}");
            return 2;
        }
        // The harness knows, or is gone.
        Err(_) => return 1,
    };
    let end = follow(&control);
    if let Err(left) = control.end_all() {
        control.report(&Report::Left { processes: left.processes });
    }
    end.iter().for_each(|report| control.report(report));
    i32::from(end.is_none())
}

/// Runs the command to its end, which is `None` if it was abandoned.
fn follow(control: &Control) -> Option<Report> {
    let failed = |stage: &str, why: String| Some(Report::Failed { stage: stage.to_owned(), why });
    let Some(plan) = Plan::decode(control.plan()) else {
        return failed("plan", "it is not what a guard reads".to_owned());
    };
    if let Err(error) = set_child_subreaper(Some(rustix::process::getpid())) {
        return failed("guard", format!("cannot adopt what the command leaves behind: {error}"));
    }
    let command = match control.execute(&plan.argv, || enter(&plan.cwd)) {
        Ok(command) => command,
        Err(report) => return report,
    };
    control.report(&Report::Started);
    match control.wait(command) {
        Ok(Waited::Ended(exit)) => Some(Report::Ended(exit)),
        Ok(Waited::Abandoned) => None,
        Err(error) => failed("wait", error.to_string()),
    }
}

fn enter(cwd: &Path) -> Result<(), Report> {
    let failed = |error| Report::Failed { stage: "cwd".to_owned(), why: format!("{}: {error}", cwd.display()) };
    std::env::set_current_dir(cwd).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        for argv in [vec![], vec![OsString::new()], vec!["sh".into(), OsStr::from_bytes(b"\xff\0\n").to_owned()]] {
            let plan = Plan { cwd: "/somewhere".into(), argv };
            assert_eq!(Plan::decode(&plan.encode()), Some(plan));
        }
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let plan = Plan { cwd: "/x".into(), argv: vec!["sh".into()] }.encode();
        for cut in (0..plan.len()).filter(|cut| *cut != 6) {
            assert_eq!(Plan::decode(&plan[..cut]), None, "{cut} bytes");
        }
        assert_eq!(Plan::decode(&[255; 64]), None);
    }
}
