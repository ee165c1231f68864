//! A command where nothing can be mounted: Landlock and seccomp alone.

use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use subprocess::Report;
use subprocess::helper::{Control, Waited};

use super::protect::Layout;
use super::stage::{SetUp, Stage};
use super::witness::Snapshot;
use super::{caps, init, landlock, limits, note, seccomp};
use crate::plan::Plan;

/// Runs the command to the end of its tree, and restores the protected paths.
pub(super) fn run(control: &Control, plan: &Plan) -> Result<Option<Report>, SetUp> {
    let layout = Layout::of(plan)?;
    let before = Snapshot::take(&layout);
    set_child_subreaper(Some(getpid())).stage("helper")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).stage("helper")?;
    let end = follow(control, plan);
    if let Err(left) = control.end_all() {
        control.report(&Report::Left { processes: left.processes });
    }
    before.restore().into_iter().for_each(|found| note(control, found));
    end
}

fn follow(control: &Control, plan: &Plan) -> Result<Option<Report>, SetUp> {
    let prepare = || confine(control, plan).map_err(Report::from);
    let command = match control.execute(&init::argv(plan), prepare) {
        Ok(command) => command,
        Err(report) => return Ok(report),
    };
    control.report(&Report::Started);
    match control.wait(command).stage("wait")? {
        Waited::Ended(exit) => Ok(Some(Report::Ended(exit))),
        Waited::Abandoned => Ok(None),
    }
}

fn confine(control: &Control, plan: &Plan) -> Result<(), SetUp> {
    std::env::set_current_dir(plan.cwd.path()).stage_at("cwd", plan.cwd.path().display())?;
    limits::limit_user_beyond_others().stage("limits")?;
    caps::drop_all().stage("capabilities")?;
    let known = landlock::apply(plan)?;
    seccomp::apply(plan)?;
    if plan.tell {
        crate::open::without_namespaces(known).into_iter().for_each(|open| note(control, open));
    }
    Ok(())
}
