//! What a child's log says of itself, behind what was copied: how it was made, and what was switched later.

use sandbox::Mode;
use sandbox_policy::{ModeCause, ModeSet};
use session::{EndSeed, SessionId, Snapshot, TurnStart};
use subagent::{DESCRIPTOR_VERSION, Descriptor};
use tools::ToolFilter;
use user_approval::{ApprovalDecided, Outcome, Policy, PolicyCause, PolicySet};

use crate::digest::{Digest, Override, is_approval};
use crate::{Code, Finding};

/// What the parent had to hand down.
pub(crate) struct Handed<'a> {
    parent: SessionId,
    mode: Option<&'a Override<ModeSet>>,
    filter: Option<&'a ToolFilter>,
    max_depth: Option<u32>,
    /// An event of the parent's approval service.
    approval: Option<u64>,
}

impl<'a> Handed<'a> {
    /// At the capture, when the parent's log was `end` long.
    pub(crate) fn at(parent: &'a Digest, end: u64) -> Self {
        let descriptor = parent.descriptor_before(end);
        Self {
            parent: parent.header.id(),
            mode: parent.last_before(end),
            filter: descriptor.and_then(|descriptor| descriptor.tool_filter.as_ref()),
            max_depth: descriptor.and_then(|descriptor| descriptor.max_depth),
            approval: parent.approval_before(end),
        }
    }
}

/// A walk over a child's own events.
pub(crate) struct Own<'a> {
    log: &'a Snapshot,
    /// Where its own events begin.
    from: u64,
    /// `None` if the parent is not known.
    handed: Option<Handed<'a>>,
    findings: &'a mut Vec<Finding>,
    phase: Phase,
    /// What is in force: `None` before the first override.
    mode: Option<Mode>,
    policy: Option<Policy>,
    stamp: Option<u64>,
    pin: Option<u64>,
    /// The first event of an approval service.
    approval: Option<u64>,
    descriptor: Option<(u64, &'a Descriptor)>,
    /// The first event of the creation that is no policy.
    other: Option<u64>,
}

/// How far the child has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It is being made: stamps belong here.
    Creation,
    /// Its descriptor is written.
    Made,
    /// Its first turn has begun.
    Turns,
}

impl<'a> Own<'a> {
    pub(crate) fn new(
        log: &'a Snapshot,
        from: u64,
        handed: Option<Handed<'a>>,
        findings: &'a mut Vec<Finding>,
    ) -> Self {
        Self {
            log,
            from,
            handed,
            findings,
            phase: Phase::Creation,
            mode: None,
            policy: None,
            stamp: None,
            pin: None,
            approval: None,
            descriptor: None,
            other: None,
        }
    }

    pub(crate) fn check(mut self) {
        let before = self.log.events_from(0).take_while(|event| event.seq() < self.from);
        for event in before {
            self.mode = event.get().map(|set: &ModeSet| set.mode).or(self.mode);
            self.policy = event.get().map(|set: &PolicySet| set.policy).or(self.policy);
        }
        for event in self.log.events_from(self.from) {
            let seq = event.seq();
            if is_approval(event) {
                self.approval.get_or_insert(seq);
            }
            if let Some(decided) = event.get::<ApprovalDecided>() {
                self.findings.extend(allowed_under(self.policy, seq, *decided));
            }
            if let Some(set) = event.get::<ModeSet>() {
                self.mode_set(seq, *set);
                self.mode = Some(set.mode);
            } else if let Some(set) = event.get::<PolicySet>() {
                self.policy_set(seq, *set);
                self.policy = Some(set.policy);
            } else if let Some(descriptor) = event.get::<Descriptor>() {
                self.described(seq, descriptor);
            } else if event.get::<TurnStart>().is_some() {
                self.other.get_or_insert(seq);
                self.phase = Phase::Turns;
            } else if event.get::<EndSeed>().is_none() && self.phase == Phase::Creation {
                self.other.get_or_insert(seq);
            }
        }
        self.check_missing();
    }

    fn mode_set(&mut self, seq: u64, set: ModeSet) {
        match (set.source, self.phase) {
            (Some(ModeCause::Delegation), _) if self.stamp.is_none() => {
                self.stamp = Some(seq);
                self.stamped(seq, set.mode);
            }
            (Some(ModeCause::Delegation), Phase::Made | Phase::Turns) => {
                let why = "it says that a delegation wrote it, and the child had been made before";
                self.found(Code::DelegationEventLate, seq, why);
            }
            (Some(ModeCause::Initial), _) | (Some(ModeCause::Preset), Phase::Creation) => {
                let why = "an initial override, which no session with a parent has";
                self.found(Code::InitialOverrideOnChild, seq, why);
            }
            (Some(ModeCause::Delegation | ModeCause::Ancestor) | None, Phase::Creation) => self.in_creation(seq),
            (Some(ModeCause::Ancestor), Phase::Made | Phase::Turns) => {
                match self.mode {
                    // Whatever it is said to be, what an unswitched child followed is in no log.
                    None if set.mode > Mode::ReadOnly => {
                        let mode = set.mode;
                        let why =
                            format!("an operator's tightening from the deployment default to {mode} may not tighten");
                        self.found(Code::AncestorNotNarrower, seq, why);
                    }
                    before => self.findings.extend(ancestor(seq, before, set.mode)),
                }
            }
            (Some(ModeCause::Preset) | None, Phase::Made | Phase::Turns) => self.switched(seq, set.mode),
        }
    }

    fn stamped(&mut self, seq: u64, mode: Mode) {
        match self.phase {
            Phase::Creation if self.pin.is_some() => {
                self.found(Code::StampsOutOfOrder, seq, "the sandbox stamp stands behind the approval pin");
            }
            Phase::Creation => self.check_first(),
            Phase::Made => self.found(Code::StampLate, seq, "the sandbox stamp stands behind the descriptor"),
            Phase::Turns => self.found(Code::StampLate, seq, "the sandbox stamp stands behind the start of a turn"),
        }
        let Some(handed) = &self.handed else { return };
        let parent = handed.parent;
        let Some(had) = handed.mode else {
            let why = format!("a stamp of {mode}, and {parent} had no override when it delegated");
            return self.found(Code::StampUnfounded, seq, why);
        };
        let (at, had) = (had.seq, had.set.mode);
        let (code, how) = match mode.cmp(&had) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Greater => (Code::StampWider, "wider"),
            std::cmp::Ordering::Less => (Code::StampNarrower, "narrower"),
        };
        let why = format!("the stamp says {mode}, {how} than the {had} (seq {at}) that {parent} had when it delegated");
        self.found(code, seq, why);
    }

    fn switched(&mut self, seq: u64, mode: Mode) {
        let why = match self.mode {
            Some(before) if mode > before => format!("switched from {before} to the wider {mode}"),
            None if mode > Mode::ReadOnly => {
                format!("switched from the deployment default to {mode}, which may be wider")
            }
            Some(_) | None => return,
        };
        self.found(Code::WideningSwitch, seq, why);
    }

    fn policy_set(&mut self, seq: u64, set: PolicySet) {
        match (set.source, self.phase) {
            (Some(PolicyCause::Delegation), phase) if self.pin.is_none() => {
                self.pin = Some(seq);
                match phase {
                    Phase::Creation => self.check_first(),
                    Phase::Made => self.found(Code::PinLate, seq, "the approval pin stands behind the descriptor"),
                    Phase::Turns => {
                        self.found(Code::PinLate, seq, "the approval pin stands behind the start of a turn")
                    }
                }
                if set.policy != Policy::Never {
                    self.found(Code::PinNotNever, seq, "the approval pin is `ask`: a child is pinned to `never`");
                }
            }
            (Some(PolicyCause::Delegation), Phase::Made | Phase::Turns) => {
                let why = "it says that a delegation wrote it, and the child had been made before";
                self.found(Code::DelegationEventLate, seq, why);
            }
            (_, Phase::Creation) => self.in_creation(seq),
            (Some(PolicyCause::Preset) | None, Phase::Made | Phase::Turns) => {
                if set.policy == Policy::Ask && self.policy != Some(Policy::Ask) {
                    let why = "the approval policy was switched to `ask`, so that this child can be answered";
                    self.found(Code::WideningApproval, seq, why);
                }
            }
        }
    }

    fn described(&mut self, seq: u64, descriptor: &'a Descriptor) {
        if self.descriptor.is_some() {
            return self.found(Code::DescriptorDuplicated, seq, "a second descriptor: a child has one");
        }
        self.descriptor = Some((seq, descriptor));
        match self.phase {
            Phase::Creation | Phase::Made => self.phase = Phase::Made,
            Phase::Turns => {
                self.found(Code::DescriptorLate, seq, "the descriptor stands behind the start of a turn");
            }
        }
        if descriptor.version != DESCRIPTOR_VERSION {
            let version = descriptor.version;
            let why = format!("the descriptor is of version {version}; this program knows {DESCRIPTOR_VERSION}");
            self.found(Code::DescriptorUnknownVersion, seq, why);
        }
        let (limit, depth) = (descriptor.max_depth, self.log.header().depth());
        if let Some(limit) = limit.filter(|limit| depth > *limit) {
            let why = format!("it stands at depth {depth}, and is held to {limit}");
            self.found(Code::DepthBeyondLimit, seq, why);
        }
        let Some(Handed { parent, filter, max_depth, .. }) = self.handed else { return };
        if let Some(had) = filter
            && !descriptor.tool_filter.clone().unwrap_or_default().is_within(had)
        {
            let why = format!("its tool filter admits what that of {parent} does not");
            self.found(Code::FilterWider, seq, why);
        }
        if let Some(had) = max_depth
            && limit.is_none_or(|limit| limit > had)
        {
            let limit = limit.map_or_else(|| "no depth".to_owned(), |limit| format!("depth {limit}"));
            let why = format!("it is held to {limit}, and {parent} was held to depth {had}");
            self.found(Code::DepthLimitWider, seq, why);
        }
    }

    /// A stamp is the first thing in a child's log, but for other stamps.
    fn check_first(&mut self) {
        if let Some(other) = self.other
            && !self.findings.iter().any(|finding| finding.code == Code::EventBeforeStamps)
        {
            self.found(Code::EventBeforeStamps, other, "it stands before the stamps, which are the first of a child");
        }
    }

    fn in_creation(&mut self, seq: u64) {
        let why = "a policy event that is none of its stamps, while the child was made";
        self.found(Code::PolicyEventInCreation, seq, why);
    }

    fn check_missing(&mut self) {
        if self.stamp.is_none()
            && let Some(Handed { parent, mode: Some(had), .. }) = &self.handed
        {
            let why =
                format!("{parent} had {} (seq {}) when it delegated, and no stamp says so", had.set.mode, had.seq);
            self.findings.push(Finding::of_log(Code::StampMissing, why));
        }
        let is_absent = self.descriptor.is_some_and(|(_, descriptor)| descriptor.approval.is_some());
        match (self.pin, is_absent) {
            (None, false) => {
                let why = "no approval pin, and the descriptor does not say that no approval service was composed";
                self.findings.push(Finding::of_log(Code::PinMissing, why));
            }
            (Some(seq), true) => {
                let why = "an approval pin, and the descriptor says that no approval service was composed";
                self.found(Code::PinUnfounded, seq, why);
            }
            (None, true) => self.check_absent(),
            (Some(_), false) => {}
        }
        if self.descriptor.is_none() {
            self.findings.push(Finding::of_log(Code::DescriptorMissing, "a child without a descriptor of its own"));
        }
    }

    /// The descriptor says that nobody could be asked: then nothing tells of asks or policies.
    fn check_absent(&mut self) {
        let parent = self.handed.as_ref().and_then(|handed| Some((handed.parent, handed.approval?)));
        let evidence = match (self.approval, parent) {
            (Some(seq), _) => format!("seq {seq} is of one"),
            (None, Some((parent, seq))) => format!("{parent} has an event of one before it delegated (seq {seq})"),
            (None, None) => return,
        };
        if let Some((seq, _)) = self.descriptor {
            self.found(Code::ApprovalNotAbsent, seq, not_absent(&evidence));
        }
    }

    fn found(&mut self, code: Code, seq: u64, message: impl Into<String>) {
        self.findings.push(Finding::at(code, seq, message));
    }
}

/// What is said of a descriptor by which no approval service was composed, although there was one.
pub(crate) fn not_absent(evidence: &str) -> String {
    format!("the descriptor says that no approval service was composed, and {evidence}")
}

/// A permission that nobody could give, given the policy in force.
pub(crate) fn allowed_under(policy: Option<Policy>, seq: u64, decided: ApprovalDecided) -> Option<Finding> {
    let is_forbidden = policy == Some(Policy::Never) && decided.outcome == Outcome::AllowedOnce;
    let why = "an ask was allowed, and the approval policy was `never`, which rejects every ask";
    is_forbidden.then(|| Finding::at(Code::AllowedUnderNever, seq, why))
}

/// An operator's tightening, given what was in force.
pub(crate) fn ancestor(seq: u64, before: Option<Mode>, mode: Mode) -> Option<Finding> {
    let why = match before {
        Some(before) if mode >= before => format!("an operator's tightening from {before} to {mode} does not tighten"),
        None if mode == Mode::DangerFullAccess => format!("an operator's tightening to {mode} tightens nothing"),
        Some(_) | None => return None,
    };
    Some(Finding::at(Code::AncestorNotNarrower, seq, why))
}
