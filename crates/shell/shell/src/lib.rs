//! An agent's command line.
//!
//! *Owns:* the seam [`Shell`], how a command line is run under a session's mode, what is refused before it runs, the
//! environment of commands, how many files of long output are kept.
//! *Never:* what a mode means (`sandbox`), how it is held (a `SandboxProvider`), a process outside a tree that somebody
//! owns (`subprocess`), where its output is kept (`scratch`), the answer to an ask.
//!
//! ```standalone_crate
//! use std::{sync::Arc, time::Duration};
//! use context::Scope;
//! use sandbox::{Grant, Mode, Workspace};
//! use shell::{ConfinedShell, Line, Parts, Shell, ShellError, Temporary};
//! use subprocess::{Environment, How};
//!
//! fn main() {
//!     if let Some(code) = subprocess::helper::run_if_asked() {
//!         std::process::exit(code);
//!     }
//!     let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//!     runtime.block_on(async {
//!         let agent = Scope::root("agent");
//!         let parts = Parts {
//!             workspace: Workspace::new("/"),
//!             mode: Arc::new(Mode::ReadOnly),
//!             provider: None,
//!             helper: "/proc/self/exe".into(),
//!             env: Environment::inherited(),
//!             network: None,
//!             temporary: Temporary::Private,
//!             scratch: None,
//!         };
//!         let shell = ConfinedShell::open(&agent, parts).unwrap();
//!         let line = || Line::new("echo hello", Duration::from_secs(60));
//!         let refused = shell.run(line(), None, agent.cancelled(), &mut |_| {}).await;
//!         assert!(matches!(refused, Err(ShellError::NotEnforceable(_))), "nothing here can hold it");
//!
//!         let grant = Grant::new(Mode::DangerFullAccess);
//!         let ran = shell.run(line(), Some(&grant), agent.cancelled(), &mut |_| {}).await.unwrap();
//!         assert_eq!((ran.finished.how, &*ran.finished.output.text), (How::Exited(0), "hello\n"));
//!         agent.close().await.unwrap();
//!     });
//! }
//! ```

mod confined;
mod environment;
mod error;
mod interactive;
mod interpreter;
mod shell;
mod spills;

pub use confined::{ConfinedShell, HEAD_LIMIT, Parts, TAIL_LIMIT, Temporary};
pub use error::{InvalidLine, NoCwd, OpenError, ShellError};
pub use shell::{Line, MAX_COMMAND_BYTES, Ran, Shell};
