//! The delegation boundary: what a child is handed, taken at one instant and used once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::{Event, Header, Lineage, Payload, Session, SessionId, Sessions, Snapshot};

/// What a parent hands to one child: its scope at the instant of the capture. Used once.
#[must_use = "a captured delegation becomes a child, or nothing"]
pub struct Delegation {
    house: Arc<Sessions>,
    parent: Session,
    log: Snapshot,
    stamps: Stamps,
    /// The child's, minted at the capture: children sort in the order in which they were asked for.
    child: SessionId,
}

/// Says what a policy hands down to children. Registered with [`Sessions::register_contributor`].
pub trait Contributor: Send + Sync {
    /// When it speaks. The order of stamps in a child's log follows it.
    fn rank(&self) -> Rank {
        Rank::Other
    }

    /// Adds what this policy hands down, given the parent as it is at the capture. One that panics fails the
    /// delegation: none is skipped.
    fn contribute(&self, parent: &Snapshot, stamps: &mut Stamps);
}

/// The order in which contributors speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The sandbox override.
    Sandbox,
    /// The approval pin.
    Approval,
    /// Everything else, in order of registration.
    Other,
}

/// Where a child's history starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// With nothing.
    Fresh,
    /// With everything through the parent's last closed turn.
    ClosedTurns,
}

/// Events that a child begins with, in order.
#[derive(Default)]
pub struct Stamps(Vec<Stamp>);

struct Stamp {
    tag: &'static str,
    make: Box<dyn FnOnce(u64, u64) -> Event + Send>,
}

/// A policy could not say what it hands down, so nothing is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{contributor}` panicked while it captured what the child inherits")]
pub struct CaptureError {
    /// Under which name it is registered.
    pub contributor: Arc<str>,
}

impl Stamps {
    /// Adds an event.
    pub fn add<E: Payload>(&mut self, payload: E) {
        let make = Box::new(|seq, time| Event::live(seq, time, payload));
        self.0.push(Stamp { tag: E::TAG, make });
    }
}

impl Delegation {
    /// Takes everything at once, under the parent's lock: no switch can fall between two contributors.
    pub fn capture(parent: &Session) -> Result<Self, CaptureError> {
        let house = parent.house().clone();
        let log = parent.snapshot();
        let mut stamps = Stamps::default();
        for (name, contributor) in house.contributors_by_rank() {
            let contributing = AssertUnwindSafe(|| contributor.contribute(&log, &mut stamps));
            catch_unwind(contributing).map_err(|_| CaptureError { contributor: name })?;
        }
        Ok(Self { house, parent: parent.clone(), log, stamps, child: SessionId::mint() })
    }

    /// The parent as it was: what a child in another process is confined by.
    pub fn parent(&self) -> &Snapshot {
        &self.log
    }

    /// The parent itself, whose log must be durable through [`Lineage::parent_seq`] before the child is announced.
    pub fn parent_session(&self) -> &Session {
        &self.parent
    }

    /// The child's depth, counted from the top-level session.
    pub fn depth(&self) -> u32 {
        self.log.header.depth().saturating_add(1)
    }

    /// The id that the child will have.
    pub fn child(&self) -> SessionId {
        self.child
    }

    /// Whether the child is stamped with an event of this type.
    pub fn hands_down<E: Payload>(&self) -> bool {
        self.stamps.0.iter().any(|stamp| stamp.tag == E::TAG)
    }

    /// The child's log: the seed, its end, and the stamps. Everything from the end of the seed on happens now.
    pub(crate) fn into_child(self, seed: Seed) -> (Arc<Sessions>, Snapshot) {
        let Self { house, log: parent, stamps, child, .. } = self;
        let depth = parent.header.depth().saturating_add(1);
        let lineage = Lineage { parent: parent.header.id, parent_seq: parent.len(), origin: house.origin(), depth };
        let seed = match seed {
            Seed::Fresh => None,
            Seed::ClosedTurns => parent.closed_turns(),
        };
        let seed_length = seed.as_ref().map_or(0, |seed| seed.len());
        let now = house.now();
        let header = Arc::new(Header::new(child, parent.header.cwd.clone(), now, Some(lineage), seed_length));
        let mut log = match seed {
            None => Snapshot::new(header),
            Some(seed) => {
                let mut log = seed.under(header);
                log.push(Event::live(log.len(), now, crate::EndSeed {}));
                log
            }
        };
        for stamp in stamps.0 {
            log.push((stamp.make)(log.len(), now));
        }
        (house, log)
    }
}
