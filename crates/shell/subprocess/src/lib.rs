//! A process tree with one owner.
//!
//! *Owns:* a process tree: its environment, its output, its end.
//! *Never:* what a command may do (a sandbox's), a shell's syntax, a direct child that is not a helper.
//!
//! The harness never starts a command itself. It starts a *helper*, which is the same executable again, and the helper
//! starts the command and ends with the last process of its tree. What ties them together is a pipe, the *lifeline*: the
//! harness holds it open, and when it ends, because the owner asks for it or because the harness is dead, the helper
//! kills the whole tree. So an executable that starts commands begins its `main` with [`helper::run_if_asked`]:
//!
//! ```standalone_crate
//! use std::{path::Path, time::Duration};
//! use context::Scope;
//! use subprocess::{Environment, How, Limits, Process, Spawn, Streams, guard, run};
//! use tokio_util::sync::CancellationToken;
//!
//! fn main() {
//!     if let Some(code) = subprocess::helper::run_if_asked() {
//!         std::process::exit(code);
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//!     runtime.block_on(async {
//!         let session = Scope::root("session");
//!         let command = ["sh".into(), "-c".into(), "echo hello; exit 3".into()];
//!         let (program, args, plan) = guard(Path::new("/proc/self/exe"), &command, Path::new("/"));
//!         let (cwd, env) = ("/".into(), Environment::inherited());
//!         let spawn = Spawn { program, args, plan, cwd, env, streams: Streams::Captured };
//!         let process = Process::spawn(&session, spawn).unwrap();
//!         let limits = Limits { timeout: Duration::from_secs(60), head: 8_192, tail: 8_192, spill: None };
//!         let finished = run(process, &limits, &CancellationToken::new(), |_piece| {}).await;
//!         assert_eq!((finished.how, &*finished.output.text), (How::Exited(3), "hello\n"));
//!         session.close().await.unwrap();
//!     });
//! }
//! ```
//!
//! What a helper alone cannot hold: a process that ends its helper with `kill -9`, or stops it when the harness is already
//! dead, leaves its own descendants behind, and one that runs as somebody else (`sudo`) cannot be killed. The last is found
//! and reported. Against all of them a sandbox with a process namespace helps.

mod ended;
mod environment;
pub mod helper;
mod keep;
mod piped;
mod process;
mod program;
mod reports;
mod run;
mod spawn;
mod spill;
mod sys;

pub use ended::{Ended, Exit, How, Report};
pub use environment::Environment;
pub use keep::Captured;
pub use piped::{Input, Output, Pipes};
pub use process::Process;
pub use program::program;
pub use run::{Finished, Limits, run};
pub use spawn::{Spawn, SpawnError, Streams, guard};
pub use spill::SpillTo;
