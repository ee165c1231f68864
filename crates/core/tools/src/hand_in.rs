use std::sync::Arc;

use crate::Tool;

/// The tool with which an agent hands its result in. Provided with `ctx.provide(Arc::new(HandIn(tool)))` in the agent's
/// own scope, so there is one at most.
///
/// No [`ToolFilter`](crate::ToolFilter) takes it away, since the agent could not finish without it, and it takes the place
/// of a registered tool of its name. That is no way around a filter: whatever it answers that is no error ends the turn.
pub struct HandIn(pub Arc<dyn Tool>);
