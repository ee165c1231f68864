//! What ties a helper to the harness.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, setpgid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::{LIFELINE, MAX_PLAN, MAX_REPORT, REPORTS};
use crate::{Exit, Report, sys};

/// The lifeline, the way back, and the plan. Forked children have it too.
#[derive(Debug)]
pub struct Control {
    lifeline: OwnedFd,
    reports: File,
    children: OwnedFd,
    plan: Vec<u8>,
}

/// Why a process is no helper.
#[derive(Debug, thiserror::Error)]
pub enum NoHelper {
    /// It has a thread beside the one that asks.
    #[error("a helper has one thread, and this process has {0}")]
    Threads(usize),
    /// It was not started by the harness.
    #[error("descriptor {number} is no pipe to the harness, which alone starts helpers: {source}")]
    NotPassed {
        /// The descriptor.
        number: i32,
        /// What the system said.
        source: io::Error,
    },
    /// The harness ended before it had said what to do.
    #[error("the harness ended before it had sent its plan")]
    NoPlan(#[source] io::Error),
    /// The harness announced a longer plan than there is.
    #[error("a plan has at most {MAX_PLAN} bytes, and this one has {0}")]
    PlanTooLong(usize),
    /// The system refused something.
    #[error("{what}: {source}")]
    Refused {
        /// What was asked of it.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Why a waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The process ended.
    Ended(Exit),
    /// The lifeline did: everything is to be ended.
    Abandoned,
}

impl Control {
    /// Makes a helper of this process: closes every descriptor beyond those that are for it, puts it into a group of
    /// its own, holds back all signals and reads the plan.
    ///
    /// # Errors
    ///
    /// What keeps this process from being one. The harness has then been told, if there is a way to it.
    pub fn open() -> Result<Self, NoHelper> {
        let (lifeline, reports) = (passed(LIFELINE)?, File::from(passed(REPORTS)?));
        match set_up(&lifeline) {
            Ok((children, plan)) => Ok(Self { lifeline, reports, children, plan }),
            Err(error) => {
                let report = Report::Failed { stage: "helper".to_owned(), why: error.to_string() };
                let _ = (&reports).write_all(line(&report).as_bytes());
                Err(error)
            }
        }
    }

    /// What the harness wants done.
    pub fn plan(&self) -> &[u8] {
        &self.plan
    }

    /// Hangs up when the tree is to be ended. Nothing more is to be read from it.
    pub fn lifeline(&self) -> BorrowedFd<'_> {
        self.lifeline.as_fd()
    }

    /// Tells the harness. One that is gone needs no telling, and its end shows on the lifeline. A report that is too long for
    /// the harness is cut.
    pub fn report(&self, report: &Report) {
        let line = line(report);
        let _ = (&self.reports).write_all(line.as_bytes());
    }

    /// Lets go of the standard streams, which are the command's: whoever reads what it writes sees when it closes them.
    pub fn let_go(&self) {
        // Without it the end is there when the tree is gone.
        if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
            let _ = dup2_stdin(&nothing).and_then(|()| dup2_stdout(&nothing)).and_then(|()| dup2_stderr(&nothing));
        }
    }

    /// Waits for a child, and takes the other children that end meanwhile off the process table.
    ///
    /// # Errors
    ///
    /// It is no child of this process.
    pub fn wait(&self, child: Pid) -> io::Result<Waited> {
        loop {
            self.drain();
            loop {
                match rustix::process::wait(WaitOptions::NOHANG) {
                    Ok(Some((pid, status))) if pid == child => return Ok(Waited::Ended(exit(status))),
                    Ok(Some(_)) | Err(Errno::INTR) => continue,
                    Ok(None) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let mut ready = [self.hang_up(), PollFd::new(&self.children, PollFlags::IN)];
            match poll(&mut ready, None) {
                Ok(_) if ready[0].revents().is_empty() => {}
                Ok(_) => return Ok(Waited::Abandoned),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Asks for the end of the lifeline alone, not for what may be in it.
    pub(super) fn hang_up(&self) -> PollFd<'_> {
        PollFd::new(&self.lifeline, PollFlags::empty())
    }

    pub(super) fn children(&self) -> PollFd<'_> {
        PollFd::new(&self.children, PollFlags::IN)
    }

    /// Takes what is known of children, so that the next poll waits for news.
    pub(super) fn drain(&self) {
        let mut room = [0_u8; 1024];
        while rustix::io::read(&self.children, &mut room).is_ok_and(|read| read > 0) {}
    }
}

/// How a process ended that has.
pub(super) fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => unreachable!("only ends are waited for"),
    }
}

fn set_up(lifeline: &OwnedFd) -> Result<(OwnedFd, Vec<u8>), NoHelper> {
    let refused = |what| move |source| NoHelper::Refused { what, source };
    sys::block_signals().map_err(refused("cannot hold back signals"))?;
    let threads = std::fs::read_dir("/proc/self/task").map_err(refused("cannot count the threads"))?.count();
    if threads != 1 {
        return Err(NoHelper::Threads(threads));
    }
    sys::close_from(REPORTS + 1).map_err(refused("cannot close descriptors"))?;
    let children = sys::child_signals().map_err(refused("cannot watch children"))?;
    // A terminal's signals go past it. It stays in the harness's session: when the harness dies, the kernel continues the
    // stopped members of a group that this leaves alone, and a command may have stopped its helper.
    let _ = setpgid(None, None);
    Ok((children, read_plan(lifeline)?))
}

fn passed(number: i32) -> Result<OwnedFd, NoHelper> {
    let not_passed = |source| NoHelper::NotPassed { number, source };
    let fd = sys::passed(number).map_err(not_passed)?;
    let is_pipe = fstat(&fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    if is_pipe { Ok(fd) } else { Err(not_passed(io::ErrorKind::InvalidInput.into())) }
}

fn read_plan(lifeline: &OwnedFd) -> Result<Vec<u8>, NoHelper> {
    let mut lifeline = File::from(lifeline.try_clone().map_err(NoHelper::NoPlan)?);
    let mut len = [0; 4];
    lifeline.read_exact(&mut len).map_err(NoHelper::NoPlan)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > MAX_PLAN {
        return Err(NoHelper::PlanTooLong(len));
    }
    let mut plan = vec![0; len];
    lifeline.read_exact(&mut plan).map_err(NoHelper::NoPlan)?;
    Ok(plan)
}

/// A report as the harness reads it.
fn line(report: &Report) -> String {
    let whole = |report: &Report| serde_json::to_string(report).expect("a report is plain data") + "\n";
    let line = whole(report);
    if line.len() <= MAX_REPORT {
        return line;
    }
    // Escaped, a byte becomes six at most.
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_REPORT / 16)].to_owned() + "…";
    whole(&match report {
        Report::Failed { stage, why } => Report::Failed { stage: cut(stage), why: cut(why) },
        Report::NotFound { program, why } => Report::NotFound { program: cut(program), why: cut(why) },
        Report::Note { text } => Report::Note { text: cut(text) },
        Report::Left { processes } => Report::Left { processes: processes[..MAX_REPORT / 16].to_vec() },
        short @ (Report::Started | Report::Ended(_)) => short.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(report: Report) {
        let line = line(&report);
        assert!(line.len() <= MAX_REPORT && line.ends_with('\n'), "{}", line.len());
        serde_json::from_str::<Report>(&line).unwrap();
    }

    #[test]
    fn a_report_is_never_longer_than_the_harness_reads() {
        let (long, worst) = ("é".repeat(MAX_REPORT), "\u{1}".repeat(MAX_REPORT));
        check(Report::Failed { stage: worst.clone(), why: worst.clone() });
        check(Report::NotFound { program: long.clone(), why: worst });
        check(Report::Note { text: long });
        check(Report::Left { processes: vec![u32::MAX; MAX_REPORT] });
        check(Report::Started);
    }
}
