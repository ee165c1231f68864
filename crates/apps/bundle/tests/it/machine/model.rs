//! What must hold, by the rules alone.

use std::collections::BTreeMap;

use policy_audit::Code;
use sandbox::Mode;
use session::SessionId;
use user_approval::Policy;

/// Every session that was ever announced.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) known: BTreeMap<SessionId, Expected>,
}

/// A session.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) lineage: Option<Lineage>,
    /// Every `sandbox/mode` that its log holds, copied ones included: the last one is its override.
    pub(crate) modes: Vec<(u64, Mode)>,
    /// Every `approval/policy` likewise.
    pub(crate) policies: Vec<(u64, Policy)>,
    /// What an audit must find: what a person widened.
    pub(crate) widened: Vec<(u64, Code)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lineage {
    pub(crate) parent: SessionId,
    pub(crate) parent_seq: u64,
    pub(crate) depth: u32,
    pub(crate) seed_length: u64,
}

impl Expected {
    pub(crate) fn top_level() -> Self {
        Self { lineage: None, modes: Vec::new(), policies: Vec::new(), widened: Vec::new() }
    }

    /// A child that is captured now, when the parent's log has `len` events, of which `seed` are copied.
    pub(crate) fn child(&self, parent: SessionId, len: u64, seed: u64) -> Self {
        let lineage = Lineage { parent, parent_seq: len, depth: self.depth() + 1, seed_length: seed };
        let mut child = Self {
            lineage: Some(lineage),
            modes: self.modes.iter().copied().filter(|(seq, _)| *seq < seed).collect(),
            policies: self.policies.iter().copied().filter(|(seq, _)| *seq < seed).collect(),
            widened: Vec::new(),
        };
        let mut next = if seed > 0 { seed + 1 } else { 0 };
        if let Some((_, mode)) = self.modes.last() {
            child.modes.push((next, *mode));
            next += 1;
        }
        child.policies.push((next, Policy::Never));
        child
    }

    pub(crate) fn depth(&self) -> u32 {
        self.lineage.map_or(0, |lineage| lineage.depth)
    }

    pub(crate) fn mode(&self, default: Mode) -> Mode {
        self.modes.last().map_or(default, |(_, mode)| *mode)
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policies.last().map_or(Policy::Ask, |(_, policy)| *policy)
    }

    pub(crate) fn switch(&mut self, seq: u64, mode: Mode) {
        let wider = match self.modes.last() {
            Some((_, before)) => mode > *before,
            None => mode > Mode::ReadOnly,
        };
        if wider && self.lineage.is_some() {
            self.widened.push((seq, Code::WideningSwitch));
        }
        self.modes.push((seq, mode));
    }

    pub(crate) fn approve(&mut self, seq: u64, policy: Policy) {
        let was_never = self.policies.last().is_none_or(|(_, before)| *before == Policy::Never);
        if policy == Policy::Ask && was_never && self.lineage.is_some() {
            self.widened.push((seq, Code::WideningApproval));
        }
        self.policies.push((seq, policy));
    }

    /// What is left of it when only `len` events are.
    pub(crate) fn cut(&mut self, len: u64) {
        self.modes.retain(|(seq, _)| *seq < len);
        self.policies.retain(|(seq, _)| *seq < len);
        self.widened.retain(|(seq, _)| *seq < len);
    }
}
