//! Which tools a child may use: those that were asked for it, of those that its parent may.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent::AgentRef;
use context::Realm;
use session::Snapshot;
use tools::{Tool, ToolFilter};

use crate::Descriptor;

/// Under which name the filter of a child stands in its scope.
pub(crate) const DELEGATED: &str = "delegation";

/// A filter names tools that there are not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a tool filter names what is no tool: {}; there are: {}", .unknown.join(", "), .known.join(", "))]
pub struct UnknownTools {
    /// What it names.
    pub unknown: Vec<Arc<str>>,
    /// What there is.
    pub known: Vec<Arc<str>>,
}

/// The filter of a child; `None` if it takes nothing away. What holds for the parent is what its log says it was held to
/// when it was delegated, and what was registered for it alone.
pub(crate) fn for_child(
    parent: &AgentRef,
    log: &Snapshot,
    asked: Option<&ToolFilter>,
    app: &Realm,
) -> Result<Option<ToolFilter>, UnknownTools> {
    let mut filter = ToolFilter::default();
    if let Some(asked) = asked {
        check(asked, app)?;
        filter = filter.and(asked);
    }
    if let Some(held) = log.latest::<Descriptor>().and_then(|descriptor| descriptor.tool_filter.as_ref()) {
        filter = filter.and(held);
    }
    let shared = app.all_registered::<ToolFilter>();
    for own in parent.ctx().realm().all_registered::<ToolFilter>() {
        if !shared.iter().any(|everyones| Arc::ptr_eq(everyones, &own)) {
            filter = filter.and(&own);
        }
    }
    Ok((!filter.admits_all()).then_some(filter))
}

fn check(asked: &ToolFilter, app: &Realm) -> Result<(), UnknownTools> {
    if asked.admits_all() {
        return Ok(());
    }
    let known: BTreeSet<Arc<str>> = app.all_named::<dyn Tool>().into_iter().map(|(name, _)| name).collect();
    let unknown: Vec<Arc<str>> = asked.names().filter(|name| !known.contains(*name)).cloned().collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(UnknownTools { unknown, known: known.into_iter().collect() }),
    }
}
