//! The two overrides that a log can hold, seen alike.

use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use serde::Serialize;
use session::{Event, Payload, Snapshot};
use user_approval::{Policy, PolicyCause, PolicySet};

/// An override: the last one in a log wins.
pub trait Knob: Payload {
    /// What it sets.
    type Value: Copy + PartialEq + Serialize;

    /// What it is called in messages.
    const NAME: &'static str;
    /// The key of its value in JSON.
    const KEY: &'static str;
    /// What a delegation writes whatever the parent has; `None` if it copies the parent's override.
    const PIN: Option<Self::Value>;

    /// What it was set to.
    fn value(&self) -> Self::Value;
    /// Why it was set: `user` for a user's own switch.
    fn source(&self) -> String;
    /// Whether a delegation wrote it.
    fn is_handed_down(&self) -> bool;
}

impl Knob for ModeSet {
    type Value = Mode;
    const NAME: &'static str = "sandbox";
    const KEY: &'static str = "mode";
    const PIN: Option<Mode> = None;

    fn value(&self) -> Mode {
        self.mode
    }

    fn source(&self) -> String {
        self.source.map_or_else(|| "user".to_owned(), |cause| name_of(&cause))
    }

    fn is_handed_down(&self) -> bool {
        self.source == Some(ModeCause::Delegation)
    }
}

impl Knob for PolicySet {
    type Value = Policy;
    const NAME: &'static str = "approval";
    const KEY: &'static str = "policy";
    const PIN: Option<Policy> = Some(Policy::Never);

    fn value(&self) -> Policy {
        self.policy
    }

    fn source(&self) -> String {
        self.source.map_or_else(|| "user".to_owned(), |cause| name_of(&cause))
    }

    fn is_handed_down(&self) -> bool {
        self.source == Some(PolicyCause::Delegation)
    }
}

/// The override that decides, and the event around it.
pub fn decided<K: Knob>(log: &Snapshot) -> Option<(&Event, &K)> {
    log.latest_event::<K>().and_then(|event| Some((event, event.get::<K>()?)))
}

/// What a mode, a policy or a cause is called on the wire.
pub fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => unreachable!("modes, policies, causes and outcomes are names on the wire"),
    }
}
