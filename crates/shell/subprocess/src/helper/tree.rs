//! Ending everything that a helper has below it.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal};

use super::Control;

/// Long enough for a process that the disk holds up, shorter than the grace of whoever waits for the helper.
const GIVE_UP: Duration = Duration::from_secs(10);

/// How long to wait for a killed child before the tree is looked at again.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// How often a tree is looked through for processes that are not stopped yet: one that forks faster than it is stopped is
/// killed as far as it is known, and looked at again.
const ROUNDS: usize = 32;

/// Processes that could not be ended: somebody else's, or held up by the system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} processes could not be ended: {processes:?}", processes.len())]
pub struct Left {
    /// Their ids.
    pub processes: Vec<u32>,
}

impl Control {
    /// Ends every descendant of this process and waits until none is left. Those whose parents have gone are found if this
    /// process is their subreaper.
    ///
    /// Each is stopped before any is killed, so that none sees another one go and replaces it.
    ///
    /// # Errors
    ///
    /// Which are still there after ten seconds.
    pub fn end_all(&self) -> Result<(), Left> {
        let give_up = Instant::now() + GIVE_UP;
        loop {
            self.drain();
            if no_child_left() {
                return Ok(());
            }
            let below = stop_all();
            if Instant::now() > give_up {
                return Err(Left {
                    processes: below.iter().map(|(pid, _)| pid.as_raw_pid().cast_unsigned()).collect(),
                });
            }
            // The deepest first, as long as its parent is there to tell it by.
            for (pid, parent) in below.iter().rev() {
                let _ = signal(*pid, *parent, Signal::KILL);
            }
            let _ = poll(&mut [self.children()], Some(&LOOK_AGAIN));
        }
    }
}

/// Sends `SIGTERM` to everything below a process that is this one's child. The first process of a namespace is not impressed.
pub(crate) fn ask_to_end(child: Pid) {
    if parent_of(child) != Some(getpid()) {
        return;
    }
    let (mut seen, mut parents) = (HashSet::new(), vec![child]);
    while let Some(parent) = parents.pop() {
        for below in children(parent).into_iter().filter(|below| seen.insert(*below)) {
            parents.push(below);
            let _ = signal(below, parent, Signal::TERM);
        }
    }
}

/// Takes children that have ended off the process table.
fn no_child_left() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Stops everything below this process and says what there is, each with its parent, parents first.
fn stop_all() -> Vec<(Pid, Pid)> {
    let (mut below, mut known) = (Vec::new(), HashSet::new());
    for _ in 0..ROUNDS {
        let mut seen = HashSet::new();
        let mut parents = vec![getpid()];
        let before = below.len();
        while let Some(parent) = parents.pop() {
            for child in children(parent).into_iter().filter(|child| seen.insert(*child)) {
                parents.push(child);
                if known.insert(child) {
                    let _ = signal(child, parent, Signal::STOP);
                    below.push((child, parent));
                }
            }
        }
        if below.len() == before {
            break;
        }
    }
    below
}

/// Signals a process if it is still the one that was seen: a number that was free for a moment may be a stranger's.
fn signal(pid: Pid, parent: Pid, signal: Signal) -> rustix::io::Result<()> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    if parent_of(pid) != Some(parent) {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(process, signal)
}

fn children(parent: Pid) -> Vec<Pid> {
    let Ok(threads) = fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    // A kernel without such lists, or a thread that has just ended.
    lists.collect::<Result<Vec<_>, _>>().map_or_else(|_| scan(parent), |lists| parse(&lists.concat()))
}

/// The same from what every process says of itself.
fn scan(parent: Pid) -> Vec<Pid> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let names: Vec<_> = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    parse(&names.join(" ")).into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parse(pids: &str) -> Vec<Pid> {
    pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // A name is in brackets and may hold any of them.
    let (_, fields) = stat.split_at(stat.iter().rposition(|byte| *byte == b')')?);
    let parent = std::str::from_utf8(fields).ok()?.split_whitespace().nth(2)?;
    Pid::from_raw(parent.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_found_by_either_way() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&cat);
        assert_eq!(parent_of(pid), Some(getpid()));
        assert!(children(getpid()).contains(&pid));
        assert!(scan(getpid()).contains(&pid));
        assert_eq!(signal(pid, pid, Signal::KILL), Err(Errno::SRCH), "its parent is another one");
        signal(pid, getpid(), Signal::KILL).unwrap();
        cat.wait().unwrap();
        assert!(signal(pid, getpid(), Signal::KILL).is_err());
    }
}
