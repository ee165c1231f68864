//! What every front door begins with: the environment, the configuration, a start that settles, the signals.
//!
//! *Owns:* the environment (read once), `.env` files, where things are kept, configuration in layers and where each value
//! of it came from, a start that leaves nothing half-started, what stops a command early.
//! *Never:* a composition of its own, a provider by type, the words of a command line, exit statuses, an agent.
//!
//! Layers, each over the one before: defaults, the user's file, the project's file, `TETHER_…` variables, flags. A project's
//! file is untrusted input: it can narrow and nothing else. What is written down and not understood is an error that names
//! the file, the line, and what would be right.
//!
//! ```
//! use app_boot::{Boot, Env, Flags, Origin};
//! let dir = tempfile::tempdir()?;
//! let home = dir.path().to_str().unwrap();
//! let env = Env::of(&[("HOME", home), ("TETHER_SANDBOX_DEFAULT", "workspace-write")]);
//! let boot = Boot::new(env, None, None)?;
//! let config = boot.configure(dir.path(), Flags { max_depth: Some(1), ..Flags::default() })?;
//! assert_eq!(config.sandbox.value.to_string(), "workspace-write");
//! assert_eq!(config.sandbox.from.to_string(), "$TETHER_SANDBOX_DEFAULT");
//! assert_eq!(config.max_depth.from, Origin::Flag("--max-depth"));
//! assert_eq!(config.approval.from, Origin::Default);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agents;
mod boot;
mod config;
mod document;
mod entries;
mod env;
mod error;
mod file;
mod numbers;
mod origin;
mod places;
mod rows;
mod settle;
mod start;
mod stops;
mod text;
mod variables;

pub use agents::{Agent, Value};
pub use boot::Boot;
pub use config::{Config, Flags, NotTaken, Tmp, ToolRules};
pub use entries::Entry;
pub use env::{Env, Source};
pub use error::{ConfigError, ConfigErrors};
pub use file::parse_approval;
pub use numbers::{Whole, parse_whole};
pub use origin::{Located, Origin, Place, Setting};
pub use places::Places;
pub use rows::Row;
pub use settle::denied_in_vain;
pub use start::{StartError, start};
pub use stops::{Stop, Stops};
