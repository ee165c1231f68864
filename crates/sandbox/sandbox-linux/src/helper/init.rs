//! A command in namespaces of its own, with this process's child as their first process.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, getegid, geteuid, kill_process, set_dumpable_behavior,
    set_parent_process_death_signal, setsid, waitpid,
};
use subprocess::helper::{Control, Waited};
use subprocess::{Exit, Report};

use super::placeholders::Held;
use super::protect::{Bind, Layout};
use super::stage::{SetUp, Stage};
use super::witness::Watch;
use super::{caps, landlock, limits, note, seccomp, view};
use crate::plan::{Net, Plan, Tier};
use crate::sys::{self, Forked, Namespaces};

/// The first process exits with it when it has told by itself what went wrong.
const TOLD: i32 = 3;

/// Runs the command to the end of its tree, and leaves the writable roots without what it had put there.
pub(super) fn run(control: &Control, plan: &Plan) -> Result<Option<Report>, SetUp> {
    let (held, layout) = Held::put(plan)?;
    let watch = Watch::begin(plan, &layout);
    let ended = in_namespaces(control, plan, &layout);
    watch.end().into_iter().for_each(|found| note(control, found));
    if let Err(left) = held.remove(plan) {
        note(control, format!("what was put in place of missing protected paths is left there: {}", left.why));
    }
    ended
}

fn in_namespaces(control: &Control, plan: &Plan, layout: &Layout) -> Result<Option<Report>, SetUp> {
    let (status, told) = io::pipe().stage("pipe")?;
    let ids = Ids::own();
    let first = match sys::fork(Namespaces::all(plan.network == Net::Denied)).stage("namespaces")? {
        Forked::Child => {
            drop(status);
            let binds = layout.binds();
            let code = catch_unwind(AssertUnwindSafe(|| first_process(control, plan, ids, &binds, told)));
            sys::leave(code.unwrap_or(1));
        }
        Forked::Parent(first) => first,
    };
    drop(told);
    control.let_go();
    match control.wait(first) {
        Ok(Waited::Ended(Exit::Code(TOLD))) => Ok(None),
        Ok(Waited::Ended(_)) => Ok(Some(Report::Ended(read_status(status)))),
        Ok(Waited::Abandoned) => {
            // The kernel ends the namespace with it, and this waits for all of that.
            let _ = kill_process(first, Signal::KILL);
            let _ = waitpid(Some(first), WaitOptions::empty());
            Ok(None)
        }
        Err(error) => Err(SetUp::new("wait", error)),
    }
}

/// How the command ended. A first process that could not tell was killed, and the command with it.
fn read_status(mut status: PipeReader) -> Exit {
    const KILLED: Exit = Exit::Signal(9);
    let mut text = Vec::new();
    status.read_to_end(&mut text).ok().and_then(|_| serde_json::from_slice(&text).ok()).unwrap_or(KILLED)
}

/// Everything that the first process does. Its end is the end of everything in the namespace.
fn first_process(control: &Control, plan: &Plan, ids: Ids, binds: &[Bind], mut told: PipeWriter) -> i32 {
    let failed = match confine(plan, ids, binds, &told) {
        Ok(lacks) => {
            lacks.into_iter().for_each(|lack| note(control, lack));
            match control.execute(&argv(plan), || Ok(())) {
                Ok(command) => return wait(control, command, &mut told),
                Err(None) => return 1,
                Err(Some(report)) => report,
            }
        }
        Err(failed) => failed.into(),
    };
    control.report(&failed);
    TOLD
}

pub(super) fn argv(plan: &Plan) -> Vec<std::ffi::OsString> {
    plan.argv.iter().map(|arg| arg.text().to_owned()).collect()
}

fn wait(control: &Control, command: Pid, told: &mut PipeWriter) -> i32 {
    control.report(&Report::Started);
    match control.wait(command) {
        Ok(Waited::Ended(exit)) => {
            let _ = told.write_all(&serde_json::to_vec(&exit).unwrap_or_default());
            0
        }
        Ok(Waited::Abandoned) | Err(_) => 1,
    }
}

/// Confines this process and all that it starts, and says what the kernel lacks for it.
fn confine(plan: &Plan, ids: Ids, binds: &[Bind], told: &PipeWriter) -> Result<Vec<String>, SetUp> {
    set_parent_process_death_signal(Some(Signal::KILL)).stage("lifeline")?;
    // A parent that ended before that sends no signal, but it has let go of its end.
    let mut alone = [PollFd::new(told, PollFlags::empty())];
    if poll(&mut alone, Some(&Timespec::default())).stage("lifeline")? > 0 {
        return Err(SetUp::new("lifeline", "the helper has ended"));
    }
    setsid().stage("session")?;
    ids.map().stage("user ids")?;
    if plan.network == Net::Denied {
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
        socket.map_err(io::Error::from).and_then(|socket| sys::bring_loopback_up(socket.as_fd())).stage("loopback")?;
    }
    view::make(plan, binds)?;
    std::env::set_current_dir(plan.cwd.path()).stage_at("cwd", plan.cwd.path().display())?;
    limits::limit_user().stage("limits")?;
    caps::drop_all().stage("capabilities")?;
    // Its descriptors and memory are nothing for those inside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).stage("first process")?;
    if plan.tier == Tier::Whole {
        landlock::apply(plan)?;
    }
    seccomp::apply(plan)?;
    Ok(if plan.tell { lacks(plan) } else { Vec::new() })
}

fn lacks(plan: &Plan) -> Vec<String> {
    let unlimited = (geteuid().is_root() && !limits::namespace_is_limited()).then_some(
        "fork bombs: the kernel (before 6.14) has no limit of processes for a namespace, so root is stopped only by the \
         machine's own limits",
    );
    let alone = (plan.tier == Tier::WithoutLandlock)
        .then_some("the kernel has no Landlock: mounts and seccomp hold alone, with no second layer behind them");
    unlimited.into_iter().chain(alone).map(str::to_owned).collect()
}

/// Who runs this. Inside a new user namespace that cannot be asked any more.
#[derive(Clone, Copy)]
struct Ids {
    user: u32,
    group: u32,
}

impl Ids {
    fn own() -> Self {
        Self { user: geteuid().as_raw(), group: getegid().as_raw() }
    }

    /// Inside, this user and group are themselves, and nobody else is anybody.
    fn map(self) -> io::Result<()> {
        let write = |name: &str, text: String| {
            let file = File::options().write(true).open(format!("/proc/self/{name}"));
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        };
        write("setgroups", "deny".into())?;
        write("uid_map", format!("{0} {0} 1", self.user))?;
        write("gid_map", format!("{0} {0} 1", self.group))
    }
}
