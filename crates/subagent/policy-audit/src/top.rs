//! A session without a parent.

use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use session::{EndSeed, Snapshot, TurnStart};
use subagent::Descriptor;
use user_approval::{ApprovalDecided, Policy, PolicyCause, PolicySet};

use crate::own::{allowed_under, ancestor};
use crate::{Code, Finding};

/// Whatever only a delegation writes has no place in it.
pub(crate) fn check(log: &Snapshot, findings: &mut Vec<Finding>) {
    let (mut mode, mut policy, mut has_turns) = (None::<Mode>, None::<Policy>, false);
    for event in log.events().iter() {
        let seq = event.seq();
        let mut found = |code, why: &str| findings.push(Finding::at(code, seq, why));
        if let Some(set) = event.get::<ModeSet>() {
            match set.source {
                Some(ModeCause::Delegation) => {
                    let why = "it says that a delegation wrote it, and this session has no parent";
                    found(Code::DelegationEventInTopLevel, why);
                }
                Some(ModeCause::Ancestor) => findings.extend(ancestor(seq, mode, set.mode)),
                Some(ModeCause::Initial) if has_turns => {
                    found(Code::InitialOverrideLate, "an initial override behind the start of a turn");
                }
                Some(ModeCause::Initial | ModeCause::Preset) | None => {}
            }
            mode = Some(set.mode);
        } else if let Some(set) = event.get::<PolicySet>() {
            if set.source == Some(PolicyCause::Delegation) {
                let why = "it says that a delegation wrote it, and this session has no parent";
                found(Code::DelegationEventInTopLevel, why);
            }
            policy = Some(set.policy);
        } else if let Some(decided) = event.get::<ApprovalDecided>() {
            findings.extend(allowed_under(policy, seq, *decided));
        } else if event.get::<Descriptor>().is_some() {
            found(Code::DescriptorUnfounded, "a child's descriptor, and this session has no parent");
        } else if event.get::<EndSeed>().is_some() {
            found(Code::EndSeedUnfounded, "the end of copied history, and a session without a parent has none");
        } else if event.get::<TurnStart>().is_some() {
            has_turns = true;
        }
    }
}
