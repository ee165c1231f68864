//! What every provider owes, as tests. A provider of one's own runs [`contract`] on apps that it composes.
//!
//! The suite brings a store, a model provider (`contract`) and a tool of its own, and looks at what can be seen from
//! outside: the registries, the logs, the announcements, the tasks of the runtime, and whatever a [`Fixture`] knows of
//! processes and files. It knows no provider, and opens nothing that a provider could not open.

mod ends;
mod fixture;
mod given_up;
mod handed_down;
mod ledger;
mod model;
mod names;
mod options;
mod probe;
mod runs;
#[cfg(test)]
mod tests;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use context::Boxed;
use tokio::runtime::Builder;

pub use fixture::{Children, Fixture, Task};

/// A promise that a provider breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {why}")]
pub struct Fault {
    /// The check that found it.
    pub check: &'static str,
    /// What was found.
    pub why: String,
}

/// On which runtime a check runs.
#[derive(Clone, Copy)]
enum Runtime {
    /// One thread, on which every await of every task has its turn: the order of things is known.
    Ordered,
    /// Four threads.
    Parallel,
}

type Check = (&'static str, Runtime, fn(Arc<dyn Fixture>) -> Boxed<'static, ()>);

macro_rules! checks {
    ($($runtime:ident $module:ident::$check:ident),* $(,)?) => {
        /// Every check, by name.
        const ALL: &[Check] =
            &[$((stringify!($check), Runtime::$runtime, |fixture| Box::pin($module::$check(fixture)))),*];
    };
}

checks![
    Ordered names::its_name_is_its_own,
    Ordered names::a_removed_provider_keeps_what_it_accepted,
    Ordered names::it_says_truly_whether_its_children_know_the_conversation,
    Ordered options::what_it_does_not_offer_is_refused,
    Ordered options::a_limit_of_depth_holds,
    Ordered options::an_output_schema_holds,
    Ordered options::a_tool_filter_holds,
    Ordered options::a_persona_holds,
    Ordered options::what_is_not_asked_for_is_the_parents,
    Ordered runs::a_run_is_told_from_start_to_end_once,
    Ordered runs::a_child_is_there_until_its_run_is_disposed,
    Ordered runs::a_disposal_returns_when_all_is_quiet,
    Ordered runs::a_dropped_run_goes,
    Ordered runs::children_go_with_their_parent,
    Ordered runs::siblings_do_not_meet,
    Ordered ends::every_end_is_a_result,
    Ordered ends::a_cancelled_child_is_aborted,
    Ordered ends::a_child_stopped_at_any_await_is_aborted_or_done,
    Ordered ends::the_output_is_the_childs_own,
    Ordered ends::a_result_settles_when_its_scope_closes,
    Ordered given_up::a_start_given_up_anywhere_leaves_nothing,
    Ordered given_up::a_start_dropped_at_any_await_leaves_nothing,
    Ordered given_up::a_start_that_fails_leaves_nothing,
    Parallel given_up::nothing_is_left_whatever_the_interleaving,
    Ordered handed_down::what_is_handed_down_is_taken_at_the_call,
    Ordered handed_down::a_child_begins_with_what_it_was_handed,
];

/// Runs every check, each on an app and a runtime of its own. Called from a plain test, outside of any runtime.
///
/// ```
/// # use std::sync::Arc; use agent::Agents; use context::{BoxError, Plugins, Scope}; use subagent::*;
/// # use async_trait::async_trait;
/// use subagent::testing::{Children, Fixture, Task, contract};
///
/// /// Children that are a sentence: they answer what they are told to, if they are told to.
/// struct Parrot;
///
/// #[async_trait]
/// impl SubagentProvider for Parrot {
///     fn inherits_parent_context(&self) -> bool { false }
///     async fn start(&self, start: Start) -> Result<Started, StartError> {
///         let (closing, prompt) = (start.ctx.cancelled().clone(), start.request.prompt.clone());
///         Ok(Started::elsewhere(async move {
///             match prompt.strip_prefix("say ") {
///                 Some(words) => RunResult::completed(vec![llm::Content::text(words)]),
///                 None => {
///                     closing.cancelled().await;
///                     RunResult::ended(StopReason::Aborted)
///                 }
///             }
///         }))
///     }
/// }
///
/// struct Aviary;
///
/// #[async_trait]
/// impl Fixture for Aviary {
///     fn name(&self) -> &str { "parrot" }
///     fn children(&self) -> Children { Children::Elsewhere }
///     fn request(&self, task: Task) -> Option<Request> {
///         match task {
///             Task::Say(words) => Some(Request::new(format!("say {words}"))),
///             Task::Hang => Some(Request::new("wait")),
///             _ => None,
///         }
///     }
///     async fn compose(&self, app: &Scope, limits: Limits) -> Result<(), BoxError> {
///         let plugins = Plugins::new()
///             .with(session::SessionsPlugin, ())
///             .with(agent::AgentsPlugin, ())
///             .with(agent_loop::AgentLoop, ())
///             .with(SubagentPlugin, Config { limits });
///         plugins.start(app).await?;
///         let subagents = app.get::<Subagents>().ok_or("the plugin provides it")?;
///         Ok(app.own(subagents.register("parrot", Arc::new(Parrot))?)?)
///     }
/// }
///
/// contract(|| Aviary);
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

/// Runs one check by its name.
///
/// # Panics
///
/// If there is no check of this name, and inside of a runtime.
pub fn check(name: &str, fixture: impl Fixture) -> Result<(), Fault> {
    let known = ALL.iter().find(|(known, ..)| *known == name);
    let (check, runtime, run) = *known.unwrap_or_else(|| panic!("the contract has no check named `{name}`"));
    let runtime = match runtime {
        Runtime::Ordered => Builder::new_current_thread().enable_all().build(),
        Runtime::Parallel => Builder::new_multi_thread().worker_threads(4).enable_all().build(),
    };
    let runtime = runtime.expect("the system has threads and timers");
    let checked = catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(Arc::new(fixture)))));
    // What a provider with a bug left running is not waited for.
    runtime.shutdown_background();
    checked.map_err(|panic| Fault { check, why: message(&*panic) })
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}
