//! What an audit can find.

use std::fmt;

use sandbox::one_line;
use serde::{Serialize, Serializer};

/// Something that is not as a delegation would have left it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What kind.
    pub code: Code,
    /// The event, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What is wrong, in one line of plain words.
    pub message: String,
}

/// A kind of finding, by a name that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// The log cannot be read, so nothing of it is proven.
    LogUnreadable,
    /// The log of the parent is not there.
    ParentMissing,
    /// The log of the parent cannot be read.
    ParentUnreadable,
    /// The session is its own ancestor.
    LineageCircle,
    /// The header names a descent that this version does not know.
    OriginUnknown,
    /// The depth is not the parent's plus one.
    DepthWrong,
    /// The workspace root is not the parent's.
    CwdDiffers,
    /// The header says that the parent's log was longer than it is.
    ParentSeqBeyond,
    /// The header says that it was delegated elsewhere in the parent's log than in the call that started it.
    CaptureElsewhere,
    /// The log names a child of its own, and there is no log of it.
    ChildMissing,
    /// The log names a child of its own whose log cannot be read far enough to tell whose it is.
    ChildUnreadable,
    /// The log names a child of its own whose header names another parent, or none.
    ChildOfAnother,
    /// A child without an event of its own: it was never announced.
    NoOwnEvents,
    /// The header says another length of the copied history than the log and the parent do.
    SeedLengthWrong,
    /// The copied history is not what the parent's log has.
    SeedDiffers,
    /// Nothing marks the end of the copied history.
    EndSeedMissing,
    /// The end of the copied history is marked again.
    EndSeedDuplicated,
    /// The end of a copied history, and nothing was copied.
    EndSeedUnfounded,
    /// The parent had an override, and the child has no stamp of it.
    StampMissing,
    /// A stamp, and the parent had no override.
    StampUnfounded,
    /// The stamp allows more than the parent's override.
    StampWider,
    /// The stamp allows less than the parent's override.
    StampNarrower,
    /// The stamp is behind the child's creation.
    StampLate,
    /// The approval pin is before the stamp.
    StampsOutOfOrder,
    /// Something else is before the stamps.
    EventBeforeStamps,
    /// No approval pin, and the descriptor does not say that no approval service was composed.
    PinMissing,
    /// An approval pin, and the descriptor says that no approval service was composed.
    PinUnfounded,
    /// The approval pin is not `never`.
    PinNotNever,
    /// The approval pin is behind the child's creation.
    PinLate,
    /// The descriptor says that no approval service was composed, and the log, its parent's or a child's says otherwise.
    ApprovalNotAbsent,
    /// An ask was allowed while the approval policy was `never`.
    AllowedUnderNever,
    /// A policy event that is no stamp, or a second one, while the child was made.
    PolicyEventInCreation,
    /// What a front door records in a new top-level session, in a session with a parent.
    InitialOverrideOnChild,
    /// What a front door records in a new session, written behind its first turn.
    InitialOverrideLate,
    /// Another event that says a delegation wrote it, behind the child's creation.
    DelegationEventLate,
    /// An event that says a delegation wrote it, in a session without a parent.
    DelegationEventInTopLevel,
    /// A switch in the child's own log to a mode that allows more. A person may have done it; no model can.
    WideningSwitch,
    /// A switch in the child's own log to a policy that lets it ask. A person may have done it; no model can.
    WideningApproval,
    /// An operator's tightening that does not tighten.
    AncestorNotNarrower,
    /// A child without a descriptor of its own.
    DescriptorMissing,
    /// More than one descriptor.
    DescriptorDuplicated,
    /// A descriptor of a version that this one does not know.
    DescriptorUnknownVersion,
    /// The descriptor is behind the first turn.
    DescriptorLate,
    /// A descriptor in a session without a parent.
    DescriptorUnfounded,
    /// The child may use a tool that its parent could not.
    FilterWider,
    /// The child's own children may stand deeper than those of its parent.
    DepthLimitWider,
    /// The child stands deeper than the limit that it is held to.
    DepthBeyondLimit,
}

/// The longest text of a log that a message repeats, in characters.
const SHOWN: usize = 200;

impl Code {
    /// Its name in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogUnreadable => "log-unreadable",
            Self::ParentMissing => "parent-missing",
            Self::ParentUnreadable => "parent-unreadable",
            Self::LineageCircle => "lineage-circle",
            Self::OriginUnknown => "origin-unknown",
            Self::DepthWrong => "depth-wrong",
            Self::CwdDiffers => "cwd-differs",
            Self::ParentSeqBeyond => "parent-seq-beyond",
            Self::CaptureElsewhere => "capture-elsewhere",
            Self::ChildMissing => "child-missing",
            Self::ChildUnreadable => "child-unreadable",
            Self::ChildOfAnother => "child-of-another",
            Self::NoOwnEvents => "no-own-events",
            Self::SeedLengthWrong => "seed-length-wrong",
            Self::SeedDiffers => "seed-differs",
            Self::EndSeedMissing => "end-seed-missing",
            Self::EndSeedDuplicated => "end-seed-duplicated",
            Self::EndSeedUnfounded => "end-seed-unfounded",
            Self::StampMissing => "stamp-missing",
            Self::StampUnfounded => "stamp-unfounded",
            Self::StampWider => "stamp-wider",
            Self::StampNarrower => "stamp-narrower",
            Self::StampLate => "stamp-late",
            Self::StampsOutOfOrder => "stamps-out-of-order",
            Self::EventBeforeStamps => "event-before-stamps",
            Self::PinMissing => "pin-missing",
            Self::PinUnfounded => "pin-unfounded",
            Self::PinNotNever => "pin-not-never",
            Self::PinLate => "pin-late",
            Self::ApprovalNotAbsent => "approval-not-absent",
            Self::AllowedUnderNever => "allowed-under-never",
            Self::PolicyEventInCreation => "policy-event-in-creation",
            Self::InitialOverrideOnChild => "initial-override-on-child",
            Self::InitialOverrideLate => "initial-override-late",
            Self::DelegationEventLate => "delegation-event-late",
            Self::DelegationEventInTopLevel => "delegation-event-in-top-level",
            Self::WideningSwitch => "widening-switch",
            Self::WideningApproval => "widening-approval",
            Self::AncestorNotNarrower => "ancestor-not-narrower",
            Self::DescriptorMissing => "descriptor-missing",
            Self::DescriptorDuplicated => "descriptor-duplicated",
            Self::DescriptorUnknownVersion => "descriptor-unknown-version",
            Self::DescriptorLate => "descriptor-late",
            Self::DescriptorUnfounded => "descriptor-unfounded",
            Self::FilterWider => "filter-wider",
            Self::DepthLimitWider => "depth-limit-wider",
            Self::DepthBeyondLimit => "depth-beyond-limit",
        }
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Finding {
    pub(crate) fn of_log(code: Code, message: impl Into<String>) -> Self {
        Self { code, seq: None, message: message.into() }
    }

    pub(crate) fn at(code: Code, seq: u64, message: impl Into<String>) -> Self {
        Self { code, seq: Some(seq), message: message.into() }
    }
}

/// A text of a log as a part of a message: one line, and not long.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("`{}…`", one_line(&text[..cut])),
        None => format!("`{}`", one_line(text)),
    }
}
