//! A place for one attack: a workspace, what is outside it, and somebody to attack.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

use sandbox::{Boundary, Mode, Workspace};
use tempfile::TempDir;

use crate::ground::{ground, program};
use crate::tree::Tree;
use crate::who::{PLACE, Who};

/// What nobody inside may read.
pub(crate) const SECRET: &str = "s3cr3t-of-the-harness";
/// What a program says that got out.
pub(crate) const ESCAPED: &str = "ESCAPED";

/// Where Tether's own directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    Inside,
    Outside,
}

pub(crate) struct Yard {
    pub(crate) who: Who,
    pub(crate) root: PathBuf,
    pub(crate) temp: PathBuf,
    pub(crate) outside: PathBuf,
    pub(crate) home: PathBuf,
    victim: Child,
    shared: Shared,
    stream: UnixListener,
    hidden_name: UnixListener,
    datagram: UnixDatagram,
    tcp: TcpListener,
    udp: UdpSocket,
    _dir: TempDir,
}

impl Yard {
    /// Beside what is built, or where whoever runs this as another user says.
    pub(crate) fn new(who: Who, home: Home) -> Self {
        let place = std::env::var_os(PLACE).map_or_else(ground, PathBuf::from);
        Self::below(&place, who, home)
    }

    pub(crate) fn below(above: &Path, who: Who, home: Home) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("yard-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(above)
            .unwrap();
        let base = dir.path().canonicalize().unwrap();
        let [root, temp, outside] = ["workspace", "temp", "outside"].map(|name| base.join(name));
        let home = match home {
            Home::Inside => root.join("own/home"),
            Home::Outside => base.join("home"),
        };
        for made in [&root.join("src"), &root.join(".git/hooks"), &root.join(".git/objects"), &root.join(".git/refs")] {
            fs::create_dir_all(made).unwrap();
        }
        for made in [&temp, &outside.join("dir"), &home] {
            fs::create_dir_all(made).unwrap();
        }
        let files = [
            (root.join("src/a.txt"), "a\n"),
            (root.join(".git/HEAD"), "ref: refs/heads/main\n"),
            (root.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n"),
            (root.join(".git/hooks/sample"), "#!/bin/sh\n"),
            (outside.join("file"), "outside\n"),
            (outside.join("dir/file"), "outside\n"),
            (home.join("log"), SECRET),
        ];
        files.iter().for_each(|(path, text)| fs::write(path, text).unwrap());
        let stream = UnixListener::bind(outside.join("socket")).unwrap();
        stream.set_nonblocking(true).unwrap();
        let name = SocketAddr::from_abstract_name(outside.as_os_str().as_encoded_bytes()).unwrap();
        let hidden_name = UnixListener::bind_addr(&name).unwrap();
        hidden_name.set_nonblocking(true).unwrap();
        let datagram = UnixDatagram::bind(outside.join("datagram")).unwrap();
        datagram.set_nonblocking(true).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        who.own(&base);
        if who == Who::Nobody {
            fs::copy("/usr/bin/id", outside.join("id")).unwrap();
            fs::set_permissions(outside.join("id"), Permissions::from_mode(0o4755)).unwrap();
        }
        let mut victim = Command::new("sleep");
        victim.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env("VICTIM_SECRET", SECRET);
        let victim = who.apply(&mut victim).spawn().unwrap();
        Self {
            who,
            root,
            temp,
            outside,
            home,
            victim,
            shared: Shared::new(),
            stream,
            hidden_name,
            datagram,
            tcp,
            udp,
            _dir: dir,
        }
    }

    pub(crate) fn boundary(&self, mode: Mode) -> Boundary {
        Workspace::new(&self.root).temp(&self.temp).home(&self.home).boundary(mode)
    }

    /// Where everything is, for the attacker.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port().to_string().into();
        vec![
            ("WS", self.root.clone().into()),
            ("OUT", self.outside.clone().into()),
            ("OWN", self.home.clone().into()),
            ("TEMP", self.temp.clone().into()),
            ("VICTIM", self.victim.id().to_string().into()),
            ("TCP", port(self.tcp.local_addr())),
            ("UDP", port(self.udp.local_addr())),
            ("SHARED", self.shared.key.to_string().into()),
            ("SELF", program().into()),
        ]
    }

    /// What no command under this mode may change.
    pub(crate) fn untouchable(&self, mode: Mode) -> Tree {
        let inside = match mode {
            Mode::ReadOnly => vec![self.root.clone(), self.temp.clone()],
            Mode::WorkspaceWrite | Mode::DangerFullAccess => self
                .boundary(Mode::WorkspaceWrite)
                .protected()
                .iter()
                .filter(|it| it.extent != sandbox::Extent::Entry)
                .map(|it| it.path.clone())
                .collect(),
        };
        let all = [self.outside.as_path(), &self.home].into_iter().chain(inside.iter().map(PathBuf::as_path));
        Tree::of(all, &[])
    }

    /// What was done to others than files.
    pub(crate) fn harm(&mut self) -> Vec<String> {
        let mut harm = Vec::new();
        if let Some(status) = self.victim.try_wait().unwrap() {
            harm.push(format!("the victim was ended: {status}"));
        }
        let reached = [
            ("the unix socket", self.stream.accept().map(drop)),
            ("the abstract unix socket", self.hidden_name.accept().map(drop)),
            ("the unix datagram socket", self.datagram.recv(&mut [0; 16]).map(drop)),
            ("the TCP port", self.tcp.accept().map(drop)),
            ("the UDP port", self.udp.recv(&mut [0; 16]).map(drop)),
        ];
        for (what, reached) in reached {
            match reached {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => harm.push(format!("{what} was reached: {other:?}")),
            }
        }
        harm
    }

    /// Processes of this yard's commands that are still there.
    pub(crate) fn survivors(&self) -> Vec<u32> {
        let mark = [b"WS=", self.root.as_os_str().as_encoded_bytes()].concat();
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        let environ = |pid: &u32| fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        pids.filter(|pid| environ(pid).split(|byte| *byte == 0).any(|variable| variable == mark)).collect()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Shared memory that anybody on this machine could use.
struct Shared {
    key: i32,
    id: i32,
}

#[expect(unsafe_code, reason = "System V shared memory has no safe form")]
impl Shared {
    fn new() -> Self {
        static NEXT: AtomicI32 = AtomicI32::new(1);
        let key = (std::process::id().cast_signed() << 8) ^ NEXT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: no pointer is passed.
        let id = unsafe { libc::shmget(key, 1, libc::IPC_CREAT | 0o666) };
        Self { key, id }
    }
}

#[expect(unsafe_code, reason = "System V shared memory has no safe form")]
impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nothing is read or written through the null pointer.
        unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}
