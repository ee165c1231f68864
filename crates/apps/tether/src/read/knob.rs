//! The two overrides that a log can hold, seen alike.

use std::fmt::Display;

use sandbox::Mode;
use sandbox_policy::ModeSet;
use serde::Serialize;
use session::{Event, Payload, Snapshot};
use user_approval::{Policy, PolicyCause, PolicySet};

/// An override: the last one in a log wins.
pub(super) trait Knob: Payload {
    type Value: Copy + PartialEq + Serialize;

    /// What it is called in messages.
    const NAME: &'static str;
    /// The key of its value in JSON.
    const KEY: &'static str;
    /// What a delegation writes whatever the parent has; `None` if it copies the parent's override.
    const PIN: Option<Self::Value>;

    fn value(&self) -> Self::Value;
    /// Why it was set: `user` for a user's own switch.
    fn source(&self) -> String;
    /// Whether a delegation wrote it.
    fn handed_down(&self) -> bool;
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
        self.source.map_or_else(|| "user".to_owned(), |cause| name(&cause))
    }

    fn handed_down(&self) -> bool {
        self.source == Some(sandbox_policy::ModeCause::Delegation)
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
        self.source.map_or_else(|| "user".to_owned(), |cause| name(&cause))
    }

    fn handed_down(&self) -> bool {
        self.source == Some(PolicyCause::Delegation)
    }
}

/// The last override among the events with a `seq` below `end`.
pub(super) fn last_before<K: Knob>(log: &Snapshot, end: u64) -> Option<(&Event, &K)> {
    let before = log.events_from(0).rev().skip_while(|event| event.seq() >= end);
    before.filter_map(|event| Some((event, event.get::<K>()?))).next()
}

/// The override that decides.
pub(super) fn decided<K: Knob>(log: &Snapshot) -> Option<(&Event, &K)> {
    log.latest_event::<K>().and_then(|event| Some((event, event.get::<K>()?)))
}

/// The value and why, in a few words.
pub(super) fn in_words<K: Knob>(log: &Snapshot) -> impl Display {
    match decided::<K>(log) {
        Some((_, knob)) => format!("{} ({})", name(&knob.value()), knob.source()),
        None => "deployment default".to_owned(),
    }
}

/// What a value is called on the wire.
pub(super) fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => unreachable!("modes, policies, causes and outcomes are names on the wire"),
    }
}
