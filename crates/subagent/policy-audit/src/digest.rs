//! What decides in a log, without the rest of it: small enough to keep many, and searched instead of walked.

use std::sync::Arc;

use sandbox_policy::ModeSet;
use session::{Event, Header, Snapshot, TurnEnd};
use subagent::Descriptor;
use user_approval::{ApprovalAsked, ApprovalDecided, PolicySet};

use crate::Knob;
use crate::named::Named;

/// A log's overrides, turns and descriptors.
pub(crate) struct Digest {
    pub(crate) header: Arc<Header>,
    pub(crate) len: u64,
    modes: Vec<Override<ModeSet>>,
    policies: Vec<Override<PolicySet>>,
    /// Where each turn ended: the `seq` behind it.
    turns: Vec<u64>,
    /// Those that are the log's own.
    descriptors: Vec<(u64, Descriptor)>,
    /// The first event that only an approval service writes.
    approval: Option<u64>,
    pub(crate) named: Named,
}

/// A knob whose overrides a digest keeps.
pub(crate) trait Kept: Knob + Copy {
    fn all(digest: &Digest) -> &[Override<Self>];
}

/// An override and where it is.
pub(crate) struct Override<K> {
    pub(crate) seq: u64,
    pub(crate) set: K,
    /// Its line: a copy in a fork's history is the same, byte for byte.
    pub(crate) line: Box<str>,
}

impl Digest {
    pub(crate) fn of(log: &Snapshot) -> Self {
        let (header, len) = (log.header().clone(), log.len());
        let own = header.seed_length();
        let (modes, policies, turns, descriptors) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (approval, named) = (log.events().iter().find(|event| is_approval(event)).map(Event::seq), Named::of(log));
        let mut digest = Self { header, len, modes, policies, turns, descriptors, approval, named };
        for event in log.events().iter() {
            let seq = event.seq();
            if let Some(set) = event.get::<ModeSet>() {
                digest.modes.push(Override::new(event, *set));
            } else if let Some(set) = event.get::<PolicySet>() {
                digest.policies.push(Override::new(event, *set));
            } else if event.get::<TurnEnd>().is_some() {
                digest.turns.push(seq.saturating_add(1));
            } else if seq >= own
                && let Some(descriptor) = event.get::<Descriptor>()
            {
                digest.descriptors.push((seq, descriptor.clone()));
            }
        }
        digest
    }

    /// The last override among the events with a `seq` below `end`.
    pub(crate) fn last_before<K: Kept>(&self, end: u64) -> Option<&Override<K>> {
        let all = K::all(self);
        all[..all.partition_point(|set| set.seq < end)].last()
    }

    /// The override at a `seq`.
    pub(crate) fn at<K: Kept>(&self, seq: u64) -> Option<&Override<K>> {
        let all = K::all(self);
        all.binary_search_by_key(&seq, |set| set.seq).ok().map(|index| &all[index])
    }

    /// The `seq` behind the last turn that had ended when the log was `end` long; 0 if none had.
    pub(crate) fn closed_before(&self, end: u64) -> u64 {
        self.turns[..self.turns.partition_point(|behind| *behind <= end)].last().copied().unwrap_or(0)
    }

    /// The first event of an approval service among those with a `seq` below `end`.
    pub(crate) fn approval_before(&self, end: u64) -> Option<u64> {
        self.approval.filter(|seq| *seq < end)
    }

    /// The log's own last descriptor among the events with a `seq` below `end`.
    pub(crate) fn descriptor_before(&self, end: u64) -> Option<&Descriptor> {
        let before = self.descriptors.partition_point(|(seq, _)| *seq < end);
        self.descriptors[..before].last().map(|(_, descriptor)| descriptor)
    }
}

/// Whether only an approval service writes such an event.
pub(crate) fn is_approval(event: &Event) -> bool {
    event.get::<PolicySet>().is_some()
        || event.get::<ApprovalAsked>().is_some()
        || event.get::<ApprovalDecided>().is_some()
}

impl Kept for ModeSet {
    fn all(digest: &Digest) -> &[Override<Self>] {
        &digest.modes
    }
}

impl Kept for PolicySet {
    fn all(digest: &Digest) -> &[Override<Self>] {
        &digest.policies
    }
}

impl<K> Override<K> {
    fn new(event: &Event, set: K) -> Self {
        Self { seq: event.seq(), set, line: event.to_json().into() }
    }
}
