//! The system calls that no safe wrapper has. All of them are made by a single-threaded helper.
#![expect(unsafe_code, reason = "system calls that neither the standard library nor rustix wraps")]

use std::ffi::{c_int, c_long};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::mount::MountAttrFlags;
use rustix::process::Pid;

/// Which side of a fork this is.
pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

/// Namespaces of its own for a new process, by the kernel's flags.
#[derive(Clone, Copy)]
pub(crate) struct Namespaces(c_int);

impl Namespaces {
    /// A user, mount, process and IPC namespace, and one for the network if it is cut off.
    pub(crate) fn all(cut_off: bool) -> Self {
        let network = if cut_off { libc::CLONE_NEWNET } else { 0 };
        Self(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | network)
    }
}

/// Forks, with the child in new namespaces. For a process of one thread.
pub(crate) fn fork(namespaces: Namespaces) -> io::Result<Forked> {
    const NONE: c_long = 0;
    let flags = c_long::from(namespaces.0 | libc::SIGCHLD);
    // SAFETY: without CLONE_VM and with no stack given, this is `fork`. No other thread exists that could hold a lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, NONE, NONE, NONE, NONE) };
    match pid {
        ..=-1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => {
            let pid =
                i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or_else(|| io::Error::other("no process id"))?;
            Ok(Forked::Parent(pid))
        }
    }
}

/// Adds attributes to the mount that `fd` is at; with `AT_RECURSIVE`, to all below it as well.
pub(crate) fn add_mount_attributes(fd: impl AsFd, attributes: MountAttrFlags, flags: c_int) -> io::Result<()> {
    #[repr(C)]
    struct MountAttr {
        set: u64,
        clear: u64,
        propagation: u64,
        user_namespace: u64,
    }
    let wanted = MountAttr { set: u64::from(attributes.bits()), clear: 0, propagation: 0, user_namespace: 0 };
    let flags = flags | libc::AT_EMPTY_PATH;
    // SAFETY: the path is a C string, and `wanted` has the layout and the size that are said.
    let done = unsafe {
        let (path, size) = (c"".as_ptr(), size_of::<MountAttr>());
        libc::syscall(libc::SYS_mount_setattr, fd.as_fd().as_raw_fd(), path, flags, &raw const wanted, size)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the loopback device of this network namespace up.
pub(crate) fn bring_loopback_up(socket: impl AsFd) -> io::Result<()> {
    // SAFETY: all zeros is a value of this structure of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is a whole `ifreq` that lives through the call.
    let done = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ends this process at once, without the exit handlers that its parent runs as well.
pub(crate) fn leave(code: c_int) -> ! {
    // SAFETY: it does not return, and nothing that it skips matters to a forked child.
    unsafe { libc::_exit(code) }
}
