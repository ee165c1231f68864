//! Which messages wait, kept up to date with every event of the inbox.

use std::collections::BTreeMap;

use crate::{Delivery, Event, InboxAccepted, InboxClaimed, InboxDiscarded, MessageId, Snapshot, Typed};

/// Accepted, and neither claimed nor discarded. Ids grow with the log, so their order is that of acceptance.
#[derive(Default)]
pub(crate) struct Pending {
    waiting: BTreeMap<MessageId, Typed<InboxAccepted>>,
    /// How many of them open a turn.
    wakers: usize,
}

impl Pending {
    /// The inbox of a log that was read, from the end of its seed on: what a fork copied is its parent's history.
    pub(crate) fn of(log: &Snapshot) -> Self {
        let mut pending = Self::default();
        let seed = log.header().seed_length();
        if log.latest_event::<InboxAccepted>().is_some_and(|last| last.seq() >= seed) {
            log.events_from(seed).for_each(|event| pending.note(event));
        }
        pending
    }

    pub(crate) fn note(&mut self, event: &Event) {
        if let Some(accepted) = event.typed::<InboxAccepted>() {
            self.wakers += usize::from(wakes(&accepted));
            if let Some(replaced) = self.waiting.insert(accepted.id, accepted) {
                self.wakers -= usize::from(wakes(&replaced));
            }
        } else if let Some(InboxClaimed { ids }) = event.get() {
            self.settle(ids);
        } else if let Some(InboxDiscarded { ids, .. }) = event.get() {
            self.settle(ids);
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Typed<InboxAccepted>> {
        self.waiting.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn has_waker(&self) -> bool {
        self.wakers > 0
    }

    fn settle(&mut self, ids: &[MessageId]) {
        for id in ids {
            if let Some(settled) = self.waiting.remove(id) {
                self.wakers -= usize::from(wakes(&settled));
            }
        }
    }
}

fn wakes(accepted: &InboxAccepted) -> bool {
    match accepted.delivery {
        Delivery::Followup | Delivery::Steer => true,
        Delivery::Inject => false,
    }
}
