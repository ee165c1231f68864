use std::sync::Arc;

use serde::{Deserialize, Serialize};
use session::Payload;

/// Whether one may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Answerers are consulted.
    Ask,
    /// Every ask is rejected before anybody is consulted.
    Never,
}

/// A session's approval policy was set: an override. The last one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicySet {
    /// From here on.
    pub policy: Policy,
    /// Why; a user's own switch says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PolicyCause>,
}

/// Why a policy was set, if a user did not simply switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyCause {
    /// A permission preset was chosen.
    Preset,
    /// The pin that a delegation writes on a child.
    Delegation,
}

/// Pairs an ask with its decision: the `seq` of the ask in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// Somebody wants to be allowed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAsked {
    /// Pairs it with its decision.
    pub request_id: RequestId,
    /// The tool that asks.
    pub tool: Arc<str>,
    /// The call that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Arc<str>>,
    /// The exact operation: what a person decides on. None of it is the model's wording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// Why the model wants it, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justification: Option<Arc<str>>,
}

/// How an ask ended. One for every ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalDecided {
    /// The ask.
    pub request_id: RequestId,
    /// The answer.
    pub outcome: Outcome,
}

/// The answer to an ask. Only the first permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// This call may; no other.
    AllowedOnce,
    /// No.
    Rejected,
    /// The turn was cancelled first.
    Cancelled,
    /// There is nobody to ask.
    Unavailable,
}

impl PolicySet {
    /// A user's own switch.
    pub fn by_user(policy: Policy) -> Self {
        Self { policy, source: None }
    }
}

impl Payload for PolicySet {
    const TAG: &'static str = "approval/policy";
    const DECISIVE: bool = true;
}

impl Payload for ApprovalAsked {
    const TAG: &'static str = "approval/asked";
}

impl Payload for ApprovalDecided {
    const TAG: &'static str = "approval/decided";
}
