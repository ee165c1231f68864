//! Starting a command, and telling why it did not start.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_parent_process_death_signal, setsid,
    waitpid,
};

use super::{Control, MAX_REPORT};
use crate::Report;
use crate::sys::{self, Forked};

/// What a child exits with that could not do what it was forked for. Nobody sees it but this module.
const FAILED: i32 = 127;

impl Control {
    /// Runs `child` in a new process, which exits with the code that it returns and is killed when this process ends.
    ///
    /// # Errors
    ///
    /// The system has no room for a process.
    pub fn fork(&self, child: impl FnOnce() -> i32) -> io::Result<Pid> {
        let parent = pidfd_open(getpid(), PidfdFlags::empty())?;
        match sys::fork()? {
            Forked::Parent(pid) => Ok(pid),
            Forked::Child => {
                // An unwinding child would come back to where its parent is.
                let code = catch_unwind(AssertUnwindSafe(|| {
                    let tied = set_parent_process_death_signal(Some(Signal::KILL));
                    // A parent that ended before that sends no signal.
                    let mut gone = [PollFd::new(&parent, PollFlags::IN)];
                    let orphaned = poll(&mut gone, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
                    if tied.is_err() || orphaned { FAILED } else { child() }
                }));
                sys::exit_now(code.unwrap_or(FAILED))
            }
        }
    }

    /// Executes a command in a new process: in a session of its own, after `prepare`, looked for along `PATH`.
    ///
    /// # Errors
    ///
    /// Why it was not executed: [`Report::Failed`] if it is an error of the set-up, [`Report::NotFound`] if the system did not
    /// execute the program. `None` if the lifeline ended meanwhile; what was forked is then killed, but not waited for.
    pub fn execute(
        &self,
        argv: &[OsString],
        prepare: impl FnOnce() -> Result<(), Report>,
    ) -> Result<Pid, Option<Report>> {
        let [program, args @ ..] = argv else {
            return Err(Some(failed("command", "it has no program: its argument list is empty")));
        };
        if let Some(at) = argv.iter().position(|arg| arg.as_bytes().contains(&0)) {
            let which = if at == 0 { "its program".to_owned() } else { format!("its argument {at}") };
            return Err(Some(failed("command", format!("{which} holds a NUL byte, which the system cannot pass on"))));
        }
        let pipe = |error| failed("command", format!("no pipe to hear from it: {error}"));
        let (failure, mut failing) = io::pipe().map_err(|error| Some(pipe(error)))?;
        // Moved, so that only the child has the other end.
        let start = move || {
            let session = setsid().map_err(|error| failed("session", error.to_string()));
            let prepare =
                || catch_unwind(AssertUnwindSafe(prepare)).unwrap_or_else(|_| Err(failed("command", "panicked")));
            let ready = session
                .and_then(|_| prepare())
                .and_then(|()| sys::let_signals_through().map_err(|error| failed("signals", error.to_string())));
            let report = match ready {
                Ok(()) => Report::NotFound {
                    program: program.to_string_lossy().into_owned(),
                    why: Command::new(program).args(args).exec().to_string(),
                },
                Err(report) => report,
            };
            let _ = failing.write_all(&serde_json::to_vec(&report).unwrap_or_default());
            FAILED
        };
        let child = self.fork(start).map_err(|error| Some(failed("fork", error.to_string())))?;
        self.executed(failure, child)
    }

    /// The pipe closes by itself when the program is executed.
    fn executed(&self, mut failure: PipeReader, child: Pid) -> Result<Pid, Option<Report>> {
        let mut ready = [self.hang_up(), PollFd::new(&failure, PollFlags::IN)];
        while poll(&mut ready, None) == Err(Errno::INTR) {}
        let abandoned = !ready[0].revents().is_empty();
        let mut said = Vec::new();
        if !abandoned {
            let read = (&mut failure).take(2 * MAX_REPORT as u64).read_to_end(&mut said);
            if said.is_empty() && read.is_ok() {
                self.let_go();
                return Ok(child);
            }
        }
        let _ = kill_process(child, Signal::KILL);
        if abandoned {
            return Err(None);
        }
        let _ = waitpid(Some(child), WaitOptions::empty());
        Err(Some(
            serde_json::from_slice(&said).unwrap_or_else(|_| failed("command", "it ended before it was executed")),
        ))
    }
}

fn failed(stage: &str, why: impl Into<String>) -> Report {
    Report::Failed { stage: stage.to_owned(), why: why.into() }
}
