use std::sync::Arc;

use sandbox::Mode;
use serde::{Deserialize, Serialize};
use session::Payload;

/// A child in another process that its parent's override would have confined was started unconfined, since an operator had
/// configured that. In the log of the parent, durable before the child is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unconfined {
    /// Who runs the child.
    pub provider: Arc<str>,
    /// The override that does not hold for it.
    pub mode: Mode,
    /// A few words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
}

impl Payload for Unconfined {
    const TAG: &'static str = "subagent/unconfined";
    const IGNORABLE: bool = true;
}
