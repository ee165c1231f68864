//! The system calls that no safe library has.
#![expect(
    unsafe_code,
    reason = "fork, signal masks, signalfd and close_range have no safe form; each block says why it holds"
)]

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

use rustix::process::Pid;

/// In which of the two processes a fork came back.
pub(crate) enum Forked {
    Parent(Pid),
    Child,
}

/// Only for a process with one thread: the caller has seen to that.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the process has one thread, so that no lock is held by another one that the child does not have.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid).map_or(Forked::Child, Forked::Parent)),
    }
}

/// Ends the process now: what its parent would do at its end is not for a forked child to do.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: it takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// Takes over a descriptor that was passed to this process by number.
pub(crate) fn passed(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: it takes no pointer; a number that is no open descriptor is an error.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and a helper takes over each of its numbers once, before anything else opens one.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor from this number on.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: it takes no pointer. Whoever calls it owns no descriptor beyond those that were passed to it.
    match unsafe { libc::syscall(libc::SYS_close_range, first as libc::c_uint, libc::c_uint::MAX, 0 as libc::c_uint) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Holds back every signal that can be held back, and forgets what the harness did about each: a command starts with
/// nothing ignored.
pub(crate) fn block_signals() -> io::Result<()> {
    let mut all = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises what it is given, and `sigprocmask` reads it. No handler is installed; a signal for
    // which nothing can be set is refused.
    let done = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        let done = libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut());
        for number in 1..=libc::SIGRTMAX() {
            libc::signal(number, libc::SIG_DFL);
        }
        done
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The opposite, for a program that is to be executed.
pub(crate) fn let_signals_through() -> io::Result<()> {
    let mut none = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises what it is given, and `sigprocmask` reads it.
    let done = unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A descriptor that is readable when a child of the process that polls it has changed.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises what it is given, the others use it.
    let fd = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was opened just now and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
