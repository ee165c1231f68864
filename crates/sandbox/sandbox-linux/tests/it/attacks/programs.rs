//! Attackers that need system calls. This executable is them, when it is started with their name.
#![expect(unsafe_code, reason = "system calls as an attacker makes them")]
#![expect(clippy::print_stdout, reason = "an attacker's output is what is looked at")]

use std::ffi::{CString, OsString, c_int, c_long};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::ground::program;
use crate::yard::ESCAPED;

const ATTACK: &str = "__it-attack";

pub(crate) fn argv(name: &str) -> Vec<OsString> {
    vec![program().into(), ATTACK.into(), name.into()]
}

pub(crate) fn run_if_asked() -> Option<i32> {
    let mut args = std::env::args().skip(1);
    if args.next()? != ATTACK {
        return None;
    }
    let name = args.next()?;
    let (_, attack) = PROGRAMS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}"));
    attack();
    Some(0)
}

const PROGRAMS: &[(&str, fn())] = &[
    ("unix socket", || got("connect", UnixStream::connect(out("socket")))),
    ("abstract unix socket", abstract_socket),
    ("unix datagram from a pair", datagrams),
    ("tcp", || got("connect", TcpStream::connect(("127.0.0.1", port("TCP"))))),
    ("own loopback", own_loopback),
    ("udp", || drop(send_to(&format!("127.0.0.1:{}", port("UDP"))))),
    ("name server", name_server),
    ("odd families", odd_families),
    ("signal by handle", signal_by_handle),
    ("trace", trace),
    ("memory", memory),
    ("limits of others", limits_of_others),
    ("handles of others", handles_of_others),
    ("capabilities", capabilities),
    ("io_uring", || worked("io_uring_setup", call(libc::SYS_io_uring_setup, [4, zeros(), 0, 0, 0]))),
    ("program in memory", program_in_memory),
    ("keyrings", keyrings),
    ("namespaces", namespaces),
    ("mounts", mounts),
    ("file handles", file_handles),
    ("kernel programs", kernel_programs),
    ("terminal input", terminal_input),
    ("shared memory", shared_memory),
    ("file flags", file_flags),
    ("other calling conventions", other_conventions),
    ("extended attributes", extended_attributes),
    ("fork bomb", fork_bomb),
    ("directory swapped for a link", swapped_directory),
];

fn out(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("OUT").unwrap()).join(name)
}

fn port(name: &str) -> u16 {
    std::env::var(name).unwrap().parse().unwrap()
}

fn victim() -> c_long {
    std::env::var("VICTIM").unwrap().parse().unwrap()
}

fn call(number: c_long, args: [c_long; 5]) -> c_long {
    let [a, b, c, d, e] = args;
    // SAFETY: every pointer that is passed here is null or to memory that is never freed.
    let done = unsafe { libc::syscall(number, a, b, c, d, e) };
    if done == -1 {
        println!("{number}: {}", io::Error::last_os_error());
    }
    done
}

fn errno(number: c_long, args: [c_long; 5]) -> i32 {
    if call(number, args) == -1 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

/// Room for whatever the kernel reads or writes.
fn zeros() -> c_long {
    Box::leak(vec![0_u64; 512].into_boxed_slice()).as_mut_ptr() as c_long
}

fn text(text: &str) -> c_long {
    CString::new(text).unwrap().into_raw() as c_long
}

fn worked(what: &str, done: c_long) {
    if done >= 0 {
        println!("{ESCAPED}: {what}");
    }
}

fn got<T>(what: &str, got: io::Result<T>) {
    match got {
        Ok(_) => println!("{ESCAPED}: {what}"),
        Err(error) => println!("{what}: {error}"),
    }
}

fn abstract_socket() {
    let name = SocketAddr::from_abstract_name(out("").parent().unwrap().join("outside").as_os_str().as_encoded_bytes());
    got("connect", UnixStream::connect_addr(&name.unwrap()));
}

/// A raw socket of this family is a datagram socket too, and either reaches a path without `socket`.
fn datagrams() {
    for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC] {
        let mut pair = [0; 2];
        // SAFETY: two descriptors fit.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
            println!("pair: {}", io::Error::last_os_error());
            continue;
        }
        // SAFETY: they were opened just now.
        let socket = unsafe { std::os::unix::net::UnixDatagram::from_raw_fd(pair[0]) };
        println!("{:?}", socket.send_to(b"x", out("datagram")));
        println!("{:?}", socket.connect(out("datagram")).and_then(|()| socket.send(b"x")));
    }
}

/// No attack: servers that a test starts for itself are reached by it.
fn own_loopback() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{:?}", TcpStream::connect(listener.local_addr().unwrap()).map(|_| "reached itself"));
}

fn send_to(address: &str) -> io::Result<usize> {
    let sent = UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| socket.send_to(b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01", address));
    println!("{address}: {sent:?}");
    sent
}

fn name_server() {
    let configured = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let configured = configured.lines().filter_map(|line| line.strip_prefix("nameserver")).map(str::trim);
    for server in configured.chain(["8.8.8.8", "1.1.1.1"]).filter(|server| !server.starts_with("127.")) {
        got("name server", send_to(&format!("{server}:53")));
    }
    use std::net::ToSocketAddrs;
    got("look-up", ("example.com", 80).to_socket_addrs());
}

fn odd_families() {
    for family in [libc::AF_PACKET, libc::AF_VSOCK, libc::AF_ALG, libc::AF_BLUETOOTH, libc::AF_UNIX] {
        let made = call(libc::SYS_socket, [family.into(), libc::SOCK_SEQPACKET.into(), 0, 0, 0]);
        worked("socket", made);
        worked("socket", call(libc::SYS_socket, [family.into(), libc::SOCK_STREAM.into(), 0, 0, 0]));
    }
    const NETFILTER: c_long = 12;
    worked("netlink", call(libc::SYS_socket, [libc::AF_NETLINK.into(), libc::SOCK_RAW.into(), NETFILTER, 0, 0]));
}

fn handle(pid: c_long) -> c_long {
    call(libc::SYS_pidfd_open, [pid, 0, 0, 0, 0])
}

fn signal_by_handle() {
    let sent = [
        call(libc::SYS_pidfd_send_signal, [handle(victim()), libc::SIGKILL.into(), 0, 0, 0]),
        call(libc::SYS_tkill, [victim(), libc::SIGKILL.into(), 0, 0, 0]),
    ];
    // A signal that was sent is not one that has arrived.
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", victim())).unwrap_or_default();
    while sent.contains(&0) && !state().is_empty() && !state().contains(") Z") {
        std::thread::yield_now();
    }
}

fn trace() {
    worked("seize", call(libc::SYS_ptrace, [libc::PTRACE_SEIZE.into(), victim(), 0, 0, 0]));
    worked("attach", call(libc::SYS_ptrace, [libc::PTRACE_ATTACH.into(), victim(), 0, 0, 0]));
}

/// The environment of a process lies in its stack.
fn memory() {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", victim())).unwrap_or_default();
    let stack = maps.lines().find(|line| line.ends_with("[stack]"));
    let range = stack.and_then(|line| line.split(' ').next()?.split_once('-'));
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    let Some((from, to)) = range.map(|(from, to)| (number(from), number(to))) else { return println!("no maps") };
    let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
    let opened = File::open(format!("/proc/{}/mem", victim()));
    println!("{:?}", opened.and_then(|mut mem| mem.seek(SeekFrom::Start(from)).and_then(|_| mem.read(&mut bytes))));
    println!("{}", String::from_utf8_lossy(&bytes));
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: from as *mut _, iov_len: bytes.len() };
    worked("read", call(libc::SYS_process_vm_readv, [victim(), &raw const here as _, 1, &raw const there as _, 1]));
}

fn limits_of_others() {
    let limit = Box::leak(Box::new(libc::rlimit64 { rlim_cur: 64, rlim_max: 64 }));
    let limit = &raw const *limit as c_long;
    worked("prlimit", call(libc::SYS_prlimit64, [victim(), libc::RLIMIT_NOFILE.into(), limit, 0, 0]));
}

fn handles_of_others() {
    worked("pidfd_getfd", call(libc::SYS_pidfd_getfd, [handle(victim()), 0, 0, 0, 0]));
    worked("kcmp", call(libc::SYS_kcmp, [std::process::id().into(), victim(), 0, 0, 1]));
}

fn capabilities() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let root = rustix::process::geteuid().is_root();
    for line in status.lines().filter(|line| line.starts_with("Cap")) {
        // An ordinary user has no right to narrow it, and no way to use it.
        let counts = root || !line.starts_with("CapBnd");
        let held = line.split_whitespace().nth(1).is_some_and(|bits| bits.contains(|c| c != '0'));
        println!("{}{line}", if counts && held { "ESCAPED: " } else { "" });
    }
    println!("{}", status.lines().find(|line| line.starts_with("NoNewPrivs")).unwrap());
}

fn program_in_memory() {
    let memory = call(libc::SYS_memfd_create, [text("x"), 0, 0, 0, 0]);
    let Ok(memory) = c_int::try_from(memory) else { return };
    // SAFETY: it was opened just now.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(memory) });
    file.write_all(b"#!/bin/sh\necho x > $OUT/new\n").unwrap();
    println!("{}", Command::new(format!("/proc/self/fd/{}", file.as_raw_fd())).exec());
}

fn keyrings() {
    const PROCESS: c_long = -2;
    worked("add_key", call(libc::SYS_add_key, [text("user"), text("tether"), text("x"), 1, PROCESS]));
    worked("keyctl", call(libc::SYS_keyctl, [0, PROCESS, 1, 0, 0]));
    worked("request_key", call(libc::SYS_request_key, [text("user"), text("tether"), 0, 0, 0]));
}

fn namespaces() {
    let user = c_long::from(libc::CLONE_NEWUSER);
    let fork = |number, args| match call(number, args) {
        // SAFETY: the child ends at once.
        0 => unsafe { libc::_exit(0) },
        done => worked("clone", done),
    };
    fork(libc::SYS_clone, [user | c_long::from(libc::SIGCHLD), 0, 0, 0, 0]);
    let args = Box::leak(Box::new([0_u64; 11]));
    args[0] = user.cast_unsigned();
    args[4] = libc::SIGCHLD.cast_unsigned().into();
    fork(libc::SYS_clone3, [args.as_ptr() as c_long, 88, 0, 0, 0]);
    worked(
        "setns",
        File::open("/proc/1/ns/mnt").map_or(-1, |ns| call(libc::SYS_setns, [ns.as_raw_fd().into(), 0, 0, 0, 0])),
    );
    worked("unshare", call(libc::SYS_unshare, [user, 0, 0, 0, 0]));
}

fn mounts() {
    let here = c_long::from(libc::AT_FDCWD);
    let bind = (libc::MS_BIND | libc::MS_REC).cast_signed();
    let onto = text(out("dir").to_str().unwrap());
    let mounted = call(libc::SYS_mount, [text("src"), onto, 0, bind, 0]);
    worked("mount", mounted);
    if mounted == 0 {
        worked("umount", call(libc::SYS_umount2, [onto, libc::MNT_DETACH.into(), 0, 0, 0]));
    }
    worked("open_tree", call(libc::SYS_open_tree, [here, text("src"), 1, 0, 0]));
    worked("fsopen", call(libc::SYS_fsopen, [text("tmpfs"), 0, 0, 0, 0]));
    worked("mount_setattr", call(libc::SYS_mount_setattr, [here, text("/"), 0, zeros(), 32]));
    worked("umount", call(libc::SYS_umount2, [text(".git/hooks"), libc::MNT_DETACH.into(), 0, 0, 0]));
    worked("chroot", call(libc::SYS_chroot, [text("."), 0, 0, 0, 0]));
}

fn file_handles() {
    let handle = zeros();
    // SAFETY: there is room for a handle of 128 bytes.
    unsafe { *(handle as *mut u32) = 128 };
    let here = c_long::from(libc::AT_FDCWD);
    call(libc::SYS_name_to_handle_at, [here, text(out("file").to_str().unwrap()), handle, zeros(), 0]);
    worked("open_by_handle_at", call(libc::SYS_open_by_handle_at, [here, handle, libc::O_RDWR.into(), 0, 0]));
}

fn kernel_programs() {
    let map = Box::leak(Box::new([0_u32; 32]));
    map[..4].copy_from_slice(&[2, 4, 4, 1]);
    worked("bpf", call(libc::SYS_bpf, [0, map.as_ptr() as c_long, 72, 0, 0]));
    worked("userfaultfd", call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0]));
    worked("fanotify_init", call(libc::SYS_fanotify_init, [0, 0, 0, 0, 0]));
    let counter = Box::leak(Box::new([0_u32; 32]));
    counter[..2].copy_from_slice(&[1, 128]);
    worked("perf_event_open", call(libc::SYS_perf_event_open, [counter.as_ptr() as c_long, 0, -1, -1, 0]));
}

/// Without a filter it is `ENOTTY` that comes back.
fn terminal_input() {
    for request in [0x5412, 0x541C, 0x1_0000_5412] {
        let refused = errno(libc::SYS_ioctl, [0, request, text("x"), 0, 0]) == libc::EPERM;
        worked("terminal input", if refused { -1 } else { 0 });
    }
}

/// What another process of this machine has made is found by its key.
fn shared_memory() {
    let key: c_long = std::env::var("SHARED").unwrap().parse().unwrap();
    worked("shmget", call(libc::SYS_shmget, [key, 1, 0, 0, 0]));
}

fn file_flags() {
    const NO_DUMP: u64 = 0x40;
    let file = File::open("src/a.txt").unwrap();
    let flags = Box::leak(Box::new(NO_DUMP)) as *const u64 as c_long;
    for request in [0x4008_6602, 0x1_4008_6602] {
        worked("flags", call(libc::SYS_ioctl, [file.as_raw_fd().into(), request, flags, 0, 0]));
    }
    const FILE_SETATTR: c_long = 469;
    worked("file_setattr", call(FILE_SETATTR, [libc::AT_FDCWD.into(), text("src/a.txt"), zeros(), 24, 0]));
}

/// The 32-bit door of this machine, and the one for short pointers. Each in a child, which may be killed for it.
#[cfg(target_arch = "x86_64")]
fn other_conventions() {
    const GETPID_32: i32 = 20;
    const GETPID_X32: c_long = 0x4000_0000 + 39;
    worked("x32", call(GETPID_X32, [0; 5]));
    // SAFETY: this process has one thread, and the child makes one call and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut done = GETPID_32;
        // SAFETY: the call has no arguments and changes nothing but its result.
        unsafe { std::arch::asm!("int 0x80", inout("eax") done, out("r8") _, out("r9") _, out("r10") _, out("r11") _) };
        // SAFETY: the child ends.
        unsafe { libc::_exit(if done > 0 { 42 } else { 0 }) };
    }
    let mut status = 0;
    // SAFETY: it is a child of this process.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    worked("int 0x80", if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42 { 0 } else { -1 });
}

#[cfg(not(target_arch = "x86_64"))]
fn other_conventions() {
    println!("ESCAPED? there is no other convention here");
}

fn extended_attributes() {
    let file = text(out("file").to_str().unwrap());
    call(libc::SYS_setxattr, [file, text("user.x"), text("y"), 1, 0]);
    // Some file systems have none, but all have this.
    call(libc::SYS_chmod, [file, 0o777, 0, 0, 0]);
}

/// Says how many there were. They end with this process.
fn fork_bomb() {
    const MOST: u32 = 6_000;
    let mut made = 0;
    while made < MOST {
        // SAFETY: this process has one thread, and the child only waits.
        match unsafe { libc::fork() } {
            0 => loop {
                std::thread::sleep(Duration::from_secs(600));
            },
            ..=-1 => break,
            _ => made += 1,
        }
    }
    println!("made {made} processes: {}", io::Error::last_os_error());
}

/// A directory and a link to another one change places while files are written below the name.
fn swapped_directory() {
    const EDITS: u32 = 10_000;
    std::fs::create_dir("d").unwrap();
    std::os::unix::fs::symlink(out("dir"), "l").unwrap();
    let swap = || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, "d", rustix::fs::CWD, "l", flags)
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = swap();
            }
        });
        let written = (0..EDITS).filter(|_| std::fs::write("d/file", "x").is_ok()).count();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        println!("{written} of {EDITS} were written");
    });
}
