//! Holds commands with the Linux kernel.
//!
//! *Owns:* namespaces, Landlock, seccomp, capabilities, in the order that holds; the probe of what this machine can hold; the
//! evidence of a denial.
//! *Never:* what a mode means (`sandbox`), which mode is in force, an approval, a command that runs unconfined because it could
//! not be confined.
//!
//! A command is started by a *helper*: the same executable again, which begins its `main` with [`helper::run_if_asked`]. It
//! has one thread, is told a plan over its lifeline, sets everything up and executes the command.
//!
//! ```
//! use std::path::Path;
//! use sandbox::{CommandLine, Confinement, Enforcement, Mode, SandboxProvider, Temp, Workspace};
//! use sandbox_linux::LinuxSandbox;
//!
//! fn main() {
//!     if let Some(code) = sandbox_linux::helper::run_if_asked() {
//!         std::process::exit(code);
//!     }
//!     let sandbox = LinuxSandbox::new();
//!     let boundary = Workspace::new("/home/ada/project").temp("/var/tmp/s1").boundary(Mode::WorkspaceWrite);
//!     let network = boundary.network();
//!     let confinement = Confinement { boundary, network, temp: Temp::Private("/var/tmp/s1".into()) };
//!     let command = CommandLine { argv: &["make".into()], cwd: Path::new("/home/ada/project") };
//!     match sandbox.enforcement() {
//!         Enforcement::None(why) => assert!(sandbox.confine(&command, &confinement).is_err(), "{why}"),
//!         Enforcement::Full | Enforcement::Partial(_) => {
//!             let launch = sandbox.confine(&command, &confinement).unwrap();
//!             assert_eq!(launch.args, [sandbox_linux::helper::CONFINE]);
//!         }
//!     }
//! }
//! ```
//!
//! # What holds
//!
//! In namespaces of its own, whoever runs it, a command sees the machine read-only, but for the workspace and a temporary
//! directory; no other process; no network but a loopback device, where the network is denied. Protected paths are
//! mounted over themselves, each name on the way to them as well; what is missing gets an empty placeholder that goes with the last
//! command that needs it; what is Tether's own lies under something empty. Then every capability is given up, and Landlock and
//! seccomp follow: they hold what mounts do not, and are a second layer behind them. At most 4,096 processes; they
//! all end with the first.
//!
//! Where there are no namespaces, Landlock and seccomp hold alone. Protected paths are then compared before and after a
//! command, and restored or reported. That is `partial`, with a line for each thing that stays open. Where that cannot be had either,
//! no command runs.
//!
//! The first needs Linux 5.12 and user namespaces, the second 6.2; root and ordinary users have the same.
//!
//! # What does not work inside
//!
//! `strace` and debuggers, anything that makes namespaces or mounts (container engines, browsers' own sandboxes), sockets by path
//! (`ssh-agent`, a database's or a container engine's socket, Python's multiprocessing manager), `git config` and `git init` in the
//! workspace's own root, writing in a repository whose own configuration says where its files are (`core.worktree`, `core.bare`),
//! core dumps, set-user-id programs, `chown` to somebody else. Root has no rights over other
//! users' files. Without namespaces, with the network denied, there are no sockets at all.
//!
//! # What is not held
//!
//! A file inside the workspace that has another name outside (a hard link from before) can be written. The disk can be
//! filled. The helper gets the command's environment, so whoever sets `LD_PRELOAD` in it loads code before anything is set
//! up; [`subprocess::Environment`] does not pass it on. Somebody *outside* who replaces a protected file while a command runs
//! undoes its mount; that is reported with the command's end. A command that locks a placeholder (`flock`) keeps others
//! in its workspace from starting while it runs. The steps of a rebase under way can be written, since `git rebase` works.
//!
//! # Evidence
//!
//! [`evidence`](sandbox::SandboxProvider::evidence) reads the end of what a failed command said. A program's words are a hint,
//! not evidence: the same words come from a file that is nobody's to write. Evidence is all of this together: one of the last lines
//! names an error that the sandbox gives, and a path beside it; the confinement forbids writing at that path; and without
//! the confinement the host would have let this very user write there. Where the error has another explanation (a file that is not
//! executable, or not readable by its mode), there is none. So a denial may be missed, but one that is told is one. A refused
//! system call names no path: of a few programs (`strace`, `unshare`) it is known what they say when such a call is all that they
//! need, and then the program is what was denied.

mod evidence;
mod features;
pub mod helper;
mod open;
mod plan;
mod plugin;
mod probe;
mod provider;
mod sys;

pub use features::{Feature, features};
pub use plugin::{Config, SandboxLinux};
pub use provider::LinuxSandbox;
