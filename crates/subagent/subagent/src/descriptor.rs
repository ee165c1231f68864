use std::sync::Arc;

use llm::Route;
use serde::{Deserialize, Serialize};
use session::Payload;
use tools::ToolFilter;

/// The version that is written.
pub const DESCRIPTOR_VERSION: u32 = 1;

/// What kind of child this log is of. One a child, behind its stamps; the last one wins over a forked one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// [`DESCRIPTOR_VERSION`].
    pub version: u32,
    /// How long it lives.
    pub mode: ChildMode,
    /// Who runs it.
    pub provider: Arc<str>,
    /// A few words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Arc<str>>,
    /// Its model, if it is not its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Route>,
    /// Its persona, if it is not the deployment's, as its model reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<Arc<str>>,
    /// The tools it is held to: what was asked for it, and what held for its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_filter: Option<ToolFilter>,
    /// How deep its own children may stand: what was asked for it, and what held for its parent. `None` if nothing but the
    /// deployment says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// That it has no pin because nobody could be asked anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalAbsent>,
}

/// How long a child lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChildMode {
    /// One prompt, one result, then it is disposed.
    OneShot,
    /// It takes more messages later.
    Continuable,
}

/// No approval service was composed when the child was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalAbsent {
    /// The one thing to say about it.
    Absent,
}

impl Payload for Descriptor {
    const TAG: &'static str = "subagent/descriptor";
    const DECISIVE: bool = true;
}
