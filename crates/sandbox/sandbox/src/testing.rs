//! What every provider owes, as tests. A provider of one's own runs [`contract`] on machines that it can be had on.
//!
//! The suite makes a workspace with a repository, a temporary directory, something of Tether's own and something that is
//! nobody's business; it has commands try what they may and may not, and looks at the disk, the process table and the other
//! end of sockets. It knows no provider. Commands are lines of `sh` and a [probe](run_if_asked).

mod files;
mod fixture;
mod honest;
mod network;
mod passes;
mod probe;
mod stage;
mod together;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::Enforcement;
use stage::Stage;

pub use fixture::{Ended, Fixture, How, Running};
pub use probe::run_if_asked;

/// A promise that a provider breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {why}")]
pub struct Fault {
    /// The check that found it.
    pub check: &'static str,
    /// What was found.
    pub why: String,
}

/// Where a check can be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Wherever the provider is.
    Anywhere,
    /// Where it can hold something.
    Held,
}

type Check = (&'static str, Where, fn(&Stage));

macro_rules! checks {
    ($($place:ident $module:ident::$check:ident),* $(,)?) => {
        /// Every check, by name.
        const ALL: &[Check] = &[$((stringify!($check), Where::$place, $module::$check)),*];
    };
}

checks![
    Anywhere honest::it_says_what_it_holds,
    Anywhere honest::what_cannot_be_held_is_refused,
    Held honest::a_denial_is_told_and_shown,
    Held honest::a_failure_is_no_denial,
    Held honest::what_could_not_start_did_not_end,
    Held files::read_only_writes_nothing,
    Held files::workspace_write_writes_below_the_root,
    Held files::nothing_outside_changes,
    Held files::protected_paths_stay,
    Held files::what_is_tethers_own_is_out_of_reach,
    Held files::what_is_tethers_own_is_out_of_reach_inside_the_root,
    Held files::a_private_temporary_directory_is_the_sessions,
    Held files::a_shared_temporary_directory_is_the_machines,
    Held network::a_denied_network_reaches_nobody,
    Held network::a_denied_network_is_reached_by_nobody,
    Held network::an_allowed_network_is_there,
    Held passes::the_environment_is_as_given,
    Held passes::arguments_and_directory_are_as_given,
    Held passes::no_more_than_the_streams_is_open,
    Held passes::it_ends_as_the_command_did,
    Held together::commands_at_once_are_held_each_by_its_own,
    Held together::others_go_on,
    Held together::nothing_is_left_of_what_ended,
    Held together::nothing_is_left_of_what_was_stopped,
];

/// How long one check may take.
const DEADLINE: Duration = Duration::from_secs(240);

/// Runs every check, each on a workspace of its own. Called from a plain test.
///
/// Where the provider holds nothing, it has to say so and to refuse; there is nothing more to check then. Where it holds
/// `partial`, what is `full` alone is not asked of it: that metadata outside stays, that other processes' environments are not
/// read, that protected paths are held at every moment and not put back at the end.
///
/// ```
/// # use std::{ffi::OsString, path::{Path, PathBuf}, sync::Arc};
/// use sandbox::testing::{Fixture, Running, contract};
/// use sandbox::*;
///
/// /// For a machine that gives no means.
/// struct Nothing;
///
/// impl SandboxProvider for Nothing {
///     fn name(&self) -> &str { "nothing" }
///     fn enforcement(&self) -> Enforcement { Enforcement::None("this machine has no means".into()) }
///     fn confine(&self, _: &CommandLine<'_>, _: &Confinement) -> Result<Launch, CannotConfine> {
///         Err(CannotConfine { why: self.enforcement().to_string() })
///     }
///     fn evidence(&self, _: &CommandLine<'_>, _: &Confinement, _: &str) -> Option<Denial> { None }
/// }
///
/// struct Here;
///
/// impl Fixture for Here {
///     fn provider(&self) -> Arc<dyn SandboxProvider> { Arc::new(Nothing) }
///     fn powerless(&self) -> Option<Arc<dyn SandboxProvider>> { None }
///     fn place(&self) -> PathBuf { std::env::temp_dir() }
///     fn probe(&self) -> PathBuf { std::env::current_exe().unwrap() }
///     fn start(&self, _: Launch, _: &Path, _: &[(OsString, OsString)]) -> Box<dyn Running> {
///         unreachable!("nothing is confined")
///     }
/// }
///
/// contract(|| Here);
/// ```
///
/// # Panics
///
/// If the provider breaks a promise; the message names each check that found one, and what it found.
pub fn contract<F: Fixture>(make: impl Fn() -> F) {
    let faults: Vec<Fault> = names().filter_map(|name| check(name, make()).err()).collect();
    let told: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert!(faults.is_empty(), "{} of the provider's promises are broken:\n{}", faults.len(), told.join("\n"));
}

/// The names of all checks, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, ..)| *name)
}

/// Runs one check by its name. Where the provider holds nothing, most have nothing to find.
///
/// # Errors
///
/// What the check found.
///
/// # Panics
///
/// If there is no check of this name.
pub fn check(name: &str, fixture: impl Fixture) -> Result<(), Fault> {
    let known = ALL.iter().find(|(known, ..)| *known == name);
    let (check, place, run) = *known.unwrap_or_else(|| panic!("the contract has no check named `{name}`"));
    let fault = |why: String| Err(Fault { check, why });
    let (over, is_over) = channel::<()>();
    let checking = thread::spawn(move || {
        let _over = over;
        let provider = fixture.provider();
        if place == Where::Held && matches!(provider.enforcement(), Enforcement::None(_)) {
            return;
        }
        run(&Stage::new(Arc::new(fixture), provider));
    });
    if is_over.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
        // What a provider with a bug left running is not waited for.
        return fault(format!("it took longer than {} s", DEADLINE.as_secs()));
    }
    checking.join().or_else(|panic| fault(message(&*panic)))
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
